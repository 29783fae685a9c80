--- The Python environment of the host: where it is, and how it is made.
---
--- It is a private one, named by the hash of what Parley requires and stamped when complete: an update that
--- requires something else makes another, and never breaks the one in use. Works without the rest of Parley,
--- for `build.lua`, which runs before the plugin is loaded.
local M = {}

local H = {}

H.root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h")
H.least = { 3, 11 }
H.candidates = { "python3", "python3.14", "python3.13", "python3.12", "python3.11", "python" }

--- The Python that runs the host: the user's, else that of the private environment, else that of a
--- developer's checkout; nil where there is none yet.
---@return string?
function M.python()
  local own = vim.g.parley_python
  if type(own) == "string" and own ~= "" then
    return vim.fn.expand(own)
  end
  local dir = M.dir()
  if H.exists(dir .. "/.ok") then
    return H.python_in(dir)
  end
  local checkout = H.python_in(H.root .. "/.venv")
  return H.exists(checkout) and checkout or nil
end

--- The folder of the private environment.
---@return string
function M.dir()
  local hash = vim.fn.sha256(table.concat(M.requirements(), "\n")):sub(1, 12)
  return vim.fs.joinpath(vim.fn.stdpath("data"), "parley", "venv-" .. hash)
end

--- What the host requires, as pip takes it.
---@return string[]
function M.requirements()
  local file = assert(io.open(H.root .. "/pyproject.toml"))
  local block = file:read("*a"):match("\ndependencies = %[\n(.-)\n%]") or ""
  file:close()
  local found = {}
  for requirement in block:gmatch('"([^"]+)"') do
    found[#found + 1] = requirement
  end
  return found
end

---@class parley.InstallOptions
---@field force? boolean even if it is there
---@field loud? boolean say so if it is there
---@field done? fun(ok: boolean)
---@field say? fun(text: string, level: string)

--- Make the environment, if it is not there; asynchronously.
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
  say("making the Python environment in " .. M.dir() .. " (once; up to a minute)...", "info")
  vim.fn.mkdir(vim.fs.dirname(M.dir()), "p")
  vim.fn.delete(M.dir(), "rf")
  H.step(commands, 1, say)
end

--- What makes the environment, one command after the other; nil and what to do where it cannot be made.
---@return string[][]?, string?
function M.commands()
  local dir, wanted = M.dir(), M.requirements()
  if vim.fn.executable("uv") == 1 then
    local pip = { "uv", "pip", "install", "--compile-bytecode", "--python", H.python_in(dir) }
    return {
      { "uv", "venv", "--quiet", "--python", (">=%d.%d"):format(unpack(H.least)), dir },
      vim.list_extend(pip, wanted),
    }
  end
  local python = H.find_python()
  if not python then
    return nil,
      ("Parley needs Python %d.%d or newer: install it (Debian: apt install python3 python3-venv; "):format(
        unpack(H.least)
      ) .. "macOS: brew install python), or install uv, then :ParleyInstall"
  end
  local pip = { H.python_in(dir), "-m", "pip", "install", "--quiet", "--disable-pip-version-check" }
  return { { python, "-m", "venv", dir }, vim.list_extend(pip, wanted) }
end

--- The first Python that is new enough.
---@return string?
function H.find_python()
  local check = ("import sys, venv, ensurepip; sys.exit(sys.version_info < (%d, %d))"):format(unpack(H.least))
  return vim.iter(H.candidates):find(function(name)
    if vim.fn.executable(name) == 0 then
      return false
    end
    local ran = vim.system({ name, "-I", "-c", check }, { env = H.env(), clear_env = true }):wait(5000)
    return ran.code == 0
  end)
end

function H.step(commands, n, say)
  local command = commands[n]
  if not command then
    assert(io.open(M.dir() .. "/.ok", "w")):close()
    H.remove_others()
    say("the Python environment is ready", "info")
    return H.finish(true)
  end
  local started, why = pcall(
    vim.system,
    command,
    { env = H.env(), clear_env = true, text = true },
    function(ran)
      vim.schedule(function()
        if ran.code == 0 then
          return H.step(commands, n + 1, say)
        end
        say(H.failed(command, ran), "error")
        H.finish(false)
      end)
    end
  )
  if not started then
    say(("cannot run %s: %s"):format(command[1], why), "error")
    H.finish(false)
  end
end

--- Why a command failed, and what to type.
function H.failed(command, ran)
  local said = vim.trim((ran.stderr or "") .. "\n" .. (ran.stdout or ""))
  H.log(command, said)
  local last = H.reason(said)
  local advice = "All it said is in " .. require("parley.host").log() .. "; then :ParleyInstall"
  if said:find("ensurepip", 1, true) then
    advice = "Install the venv module (Debian: apt install python3-venv), then :ParleyInstall"
  elseif said:find("resol", 1, true) or said:find("onnect", 1, true) then
    advice = "Is there a network? Then :ParleyInstall again"
  end
  local shown = table.concat(vim.list_slice(command, 1, 5), " ")
  return ("making the Python environment failed: `%s ...` ended with %d: %s. %s"):format(
    shown,
    ran.code,
    last,
    advice
  )
end

--- The line of a command's output that says most: the last one that is no hint.
function H.reason(said)
  local lines = vim.split(said, "\n", { trimempty = true })
  local last = vim.iter(lines):rev():find(function(line)
    return not line:lower():match("^%s*hint") and line:match("%S")
  end)
  return vim.trim(last or "it said nothing")
end

function H.log(command, said)
  local path = require("parley.host").log()
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = io.open(path, "a")
  if file then
    file:write(("%s %s\n%s\n"):format(os.date("%Y-%m-%d %H:%M:%S"), table.concat(command, " "), said))
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

--- Whether an installation runs.
function M.is_busy()
  return H.busy == true
end

--- Environments of other versions. One that a running Neovim uses goes on working: its files stay open.
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

--- The environment without what would have Python take other packages than those installed here.
function H.env()
  local env = vim.fn.environ()
  for _, name in ipairs({
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONDONTWRITEBYTECODE",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_USER",
  }) do
    env[name] = nil
  end
  return env
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
