--- The host's Python environment: its place, and its creation.
---
--- The environment is private, named after the lock file's hash, and stamped when it is complete.
--- An update with other requirements creates another environment, and never breaks the current one.
--- This module works without the rest of Parley, because `build.lua` runs before the plugin is
--- loaded.
---
--- Anyone may have written the files in the working directory. They must not choose which program
--- runs, which modules Python imports, or where packages come from. So every program starts in our
--- own folder.
local M = {}

local H = {}

H.modules = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local known = dofile(vim.fs.joinpath(H.modules, "known.lua"))
local place = dofile(vim.fs.joinpath(H.modules, "place.lua"))
H.least = { 3, 11 }
H.separator = vim.fn.has("win32") == 1 and ";" or ":"
H.candidates = { "python3", "python3.14", "python3.13", "python3.12", "python3.11", "python" }

--- The Python that runs the host: the user's, else the private environment's, else a developer's
--- checkout's; nil if there is none yet.
---@return string?
function M.python()
  local own = vim.g.parley_python
  if type(own) == "string" and own ~= "" then
    own = vim.fn.expand(own)
    return own:find("[/\\]") and own or M.program(own) or own
  end
  local dir = M.dir()
  if H.exists(dir .. "/.ok") then
    return H.python_in(dir)
  end
  local checkout = H.python_in(place.root() .. "/.venv")
  return H.exists(checkout) and checkout or nil
end

--- The folder of the private environment.
---@return string
function M.dir()
  local file = assert(io.open(M.lock(), "rb"))
  local hash = vim.fn.sha256(file:read("*a")):sub(1, 12)
  file:close()
  return vim.fs.joinpath(known.environments(), "venv-" .. hash)
end

--- The host's requirements: exact versions and file hashes; `make lock` updates them.
---@return string
function M.lock()
  return place.file("requirements.lock")
end

--- The folder where processes start: our own, where only the user can write; if it cannot be
--- created, the root folder, where only root can write.
---@return string
function M.folder()
  local folder = known.environments()
  local private = tonumber("700", 8)
  if pcall(vim.fn.mkdir, folder, "p", private) and vim.uv.fs_chmod(folder, private) then
    return folder
  end
  return "/"
end

--- The path of a program in the absolute folders in PATH; relative folders belong to the project.
---@param name string
---@return string?
function M.program(name)
  return vim
    .iter(H.path())
    :map(function(folder)
      local path = vim.fn.exepath(vim.fs.joinpath(folder, name))
      return path ~= "" and path or nil
    end)
    :next()
end

---@class parley.InstallOptions
---@field force? boolean create the environment even if it exists
---@field loud? boolean report if it exists
---@field done? fun(ok: boolean)
---@field say? fun(text: string, level: string)

--- Create the environment asynchronously, if it does not exist.
---@param opts parley.InstallOptions
function M.run(opts)
  local say = opts.say or H.say
  H.waiting = H.waiting or {}
  table.insert(H.waiting, opts.done or function() end)
  if H.busy then
    return
  end
  if not opts.force and H.exists(M.dir() .. "/.ok") then
    if opts.loud then
      say("the Python environment is complete: " .. M.dir(), "info")
    end
    return H.finish(true)
  end
  H.busy = true
  local commands, why = M.commands()
  if not commands then
    say(why, "error")
    return H.finish(false)
  end
  say("creating the Python environment in " .. M.dir() .. " (once; up to a minute)...", "info")
  vim.fn.delete(M.dir(), "rf")
  H.step(commands, 1, say)
end

--- The commands that create the environment, in order; or nil, and a remedy.
---@return string[][]?, string?
function M.commands()
  local dir, uv = M.dir(), M.program("uv")
  -- Use only wheels, because building a package would run code that the lock file does not cover.
  local locked = { "--require-hashes", "--only-binary", ":all:", "-r", M.lock() }
  if uv then
    local config = H.uv_config()
    local from = config and { uv, "--config-file", config } or { uv, "--no-config" }
    local function command(...)
      return vim.list_extend(vim.list_slice(from), { ... })
    end
    local least = (">=%d.%d"):format(unpack(H.least))
    local install = command("pip", "install", "--compile-bytecode", "--python", H.python_in(dir))
    return {
      command("venv", "--quiet", "--no-project", "--python", least, dir),
      vim.list_extend(install, locked),
    }
  end
  local python, flaw = H.find_python()
  if not python then
    local advice = ". Install Python (Debian: apt install python3 python3-venv; "
      .. "macOS: brew install python) or uv, then run :ParleyInstall"
    return nil,
      ("Parley needs Python %d.%d or newer; %s"):format(H.least[1], H.least[2], flaw) .. advice
  end
  local pip =
    { H.python_in(dir), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check" }
  return { { python, "-I", "-m", "venv", dir }, vim.list_extend(pip, locked) }
end

--- The first Python that is new enough; or nil, and the flaw of the first Python found.
---@return string?, string?
function H.find_python()
  local flaw
  for _, path in ipairs(vim.iter(H.candidates):map(M.program):totable()) do
    local ran =
      vim.system({ path, "-I", "-c", M.probe("venv", "ensurepip") }, H.options()):wait(5000)
    if ran.code == 0 then
      return path
    end
    flaw = flaw or M.flaw(path, ran)
  end
  return nil, flaw or "no Python was found"
end

--- Arguments for any Python version: Python prints its version, and fails if it is too old or lacks
--- a module.
---@param ... string the modules
function M.probe(...)
  local least = ("%d, %d"):format(unpack(H.least))
  local code = "import sys; print(sys.version.split()[0]); "
    .. ("sys.exit('too old') if sys.version_info < (%s) else 0; "):format(least)
  return code .. "import " .. table.concat({ ... }, ", ")
end

--- Python code that lists Parley's missing requirements; its argument is `M.requirements()`.
M.inventory = [=[
import re, sys, tomllib
from importlib import metadata
with open(sys.argv[1], "rb") as file:
    wanted = [re.match(r"[\w.-]+", line)[0] for line in tomllib.load(file)["project"]["dependencies"]]
def is_there(name):
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False
missing = [name for name in wanted if not is_there(name)]
sys.exit("it has no " + ", ".join(missing) if missing else 0)
]=]

--- The file with Parley's requirements: names and minimum versions.
---@return string
function M.requirements()
  return place.file("pyproject.toml")
end

--- The reason why a Python failed the check.
function M.flaw(path, ran)
  local version = vim.trim(ran.stdout or "")
  local reason = H.reason(ran.stderr or "")
  return version == "" and ("%s cannot be run: %s"):format(path, reason)
    or ("%s is Python %s: %s"):format(path, version, reason)
end

--- The user's uv settings file, else the system's. Without a named file, uv would read a project's.
---@return string?
function H.uv_config()
  local config = vim.env.XDG_CONFIG_HOME
  config = config and H.is_absolute(config) and config or vim.fn.expand("~/.config")
  local files = { vim.fs.joinpath(config, "uv/uv.toml"), "/etc/uv/uv.toml" }
  if vim.env.UV_CONFIG_FILE and H.is_absolute(vim.env.UV_CONFIG_FILE) then
    return vim.env.UV_CONFIG_FILE
  end
  return vim.iter(files):find(H.exists)
end

function H.step(commands, n, say)
  local command = commands[n]
  if not command then
    assert(io.open(M.dir() .. "/.ok", "w")):close()
    H.remove_others()
    say("the Python environment is ready", "info")
    return H.finish(true)
  end
  local started, why = pcall(vim.system, command, H.options(), function(ran)
    vim.schedule(function()
      if ran.code == 0 then
        return H.step(commands, n + 1, say)
      end
      say(H.failed(command, ran), "error")
      H.finish(false)
    end)
  end)
  if not started then
    say(("cannot run %s: %s"):format(command[1], why), "error")
    H.finish(false)
  end
end

--- A message about a failed command, with the remedy.
function H.failed(command, ran)
  local output = vim.trim((ran.stderr or "") .. "\n" .. (ran.stdout or ""))
  H.log(command, output)
  local last = H.reason(output)
  local advice = "Read its output in " .. known.log() .. ", then try :ParleyInstall again"
  if output:find("ensurepip", 1, true) then
    advice =
      "Install the venv module (Debian: apt install python3-venv), then try :ParleyInstall again"
  elseif output:find("resol", 1, true) or output:find("onnect", 1, true) then
    advice = "Check the network and the proxy, then try :ParleyInstall again"
  end
  local line = table.concat(vim.list_slice(command, 1, 5), " ")
  return ("cannot create the Python environment: `%s ...` exited with %d: %s. %s"):format(
    line,
    ran.code,
    last,
    advice
  )
end

--- The most telling line of a command's output: the last line that is not a hint.
function H.reason(output)
  local lines = vim.split(output, "\n", { trimempty = true })
  local last = vim.iter(lines):rev():find(function(line)
    return not line:lower():match("^%s*hint") and line:match("%S")
  end)
  return vim.trim(last or "no output")
end

function H.log(command, output)
  local path = known.log()
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = io.open(path, "a")
  if file then
    vim.uv.fs_chmod(path, tonumber("600", 8))
    file:write(
      ("%s %s\n%s\n"):format(os.date("%Y-%m-%d %H:%M:%S"), table.concat(command, " "), output)
    )
    file:close()
  end
end

function H.finish(ok)
  local waiting = H.waiting or {}
  H.busy, H.waiting = false, nil
  for _, done in ipairs(waiting) do
    done(ok)
  end
end

--- Whether an installation is running.
function M.is_busy()
  return H.busy == true
end

--- Remove other versions' environments. A running Neovim that uses one still works, because its
--- files stay open.
function H.remove_others()
  local dir = M.dir()
  for name in vim.fs.dir(vim.fs.dirname(dir)) do
    local other = vim.fs.joinpath(vim.fs.dirname(dir), name)
    if vim.startswith(name, "venv-") and other ~= dir then
      local stat = vim.uv.fs_stat(other)
      if stat and os.time() - stat.mtime.sec > 7 * 24 * 3600 then
        vim.fn.delete(other, "rf")
      end
    end
  end
end

--- The options for starting our processes.
function H.options()
  return { cwd = M.folder(), env = H.env(), clear_env = true, text = true }
end

--- The environment without variables that would make Python load packages from other places, or run
--- programs from the working directory.
function H.env()
  local env = vim.fn.environ()
  env.PATH = table.concat(H.path(), H.separator)
  for _, name in ipairs({
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONDONTWRITEBYTECODE",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "UV_NO_CONFIG",
    "UV_CONFIG_FILE",
    "UV_WORKING_DIR",
  }) do
    env[name] = nil
  end
  return env
end

--- The absolute folders in PATH. The others ("", "." or "bin") depend on the working directory.
---@return string[]
function H.path()
  return vim.tbl_filter(H.is_absolute, vim.split(vim.env.PATH or "", H.separator, { plain = true }))
end

function H.is_absolute(path)
  return path:match("^/") ~= nil or path:match("^%a:[/\\]") ~= nil
end

function H.python_in(dir)
  return vim.fn.has("win32") == 1 and dir .. "/Scripts/python.exe" or dir .. "/bin/python"
end

function H.exists(path)
  return vim.uv.fs_stat(path) ~= nil
end

function H.say(text, level)
  require("parley.host").message(text, level)
end

return M
