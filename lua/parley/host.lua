--- The Python process: starts it on first use, and sends it messages without waiting.
local M = {}

local H = {
  channel = nil,
  settings = nil,
  waiting = {},
  queue = {},
  agents = {},
  stderr = {},
  started = nil,
  ready = nil,
}

--- Apply changed settings.
function M.setup()
  H.settings = nil
  M.mention("setup", H.greeting())
  if package.loaded["parley.chat"] then
    require("parley.chat").settings_changed()
  end
end

--- The user's settings, as data.
---@return table
function M.settings()
  return H.plain(require("parley").given)
end

--- Send the host a message; if necessary, install and start it first.
---@param method string
---@param arguments table
function M.notify(method, arguments)
  if M.start() then
    -- A shared host may exit unnoticed; if so, start a new host.
    if not H.tell(method, arguments) and M.start() then
      H.tell(method, arguments)
    end
  elseif require("parley.install").is_busy() then
    table.insert(H.queue, { method, arguments })
    if arguments.handle then
      require("parley.status").show(
        arguments.buf,
        "Creating the Python environment...",
        arguments.handle
      )
    end
  elseif arguments.handle then
    require("parley.handle").close(arguments.handle)
  end
end

--- Send the host a message if it runs; otherwise, the message is not needed.
function M.mention(method, arguments)
  if H.channel then
    H.tell(method, arguments)
  end
end

--- Start the host if it does not run.
---@param opts? { quiet?: boolean } quiet: do not install the host, and do not report problems
---@return boolean running
function M.start(opts)
  if H.channel then
    return true
  end
  local quiet = opts ~= nil and opts.quiet == true
  local why
  if vim.g.parley_host == "python3" then
    why = H.classic()
  else
    local python = require("parley.install").python()
    if python then
      why = H.spawn(python)
    elseif quiet then
      return false
    else
      require("parley.install").run({ done = H.installed })
    end
  end
  if why and not quiet then
    M.message(why, "error")
  end
  return H.channel ~= nil
end

--- Start our own process before a chat is set up, because Python's start takes longer than that.
--- While Neovim starts, the user's settings may still be unknown.
function M.prepare()
  if vim.v.vim_did_enter == 1 and vim.g.parley_host ~= "python3" then
    M.start({ quiet = true })
  end
end

--- Stop the host; the next use starts a new one.
function M.stop()
  if H.channel and vim.g.parley_host ~= "python3" then
    vim.fn.jobstop(H.channel)
  end
end

--- The host's log file.
function M.log()
  return require("parley.known").log()
end

--- The agent names, as far as they are known.
function M.agents()
  M.start({ quiet = true })
  return H.agents
end

--- The names of the servers, providers and agents that may have a login, as far as they are known.
function M.accounts()
  M.start({ quiet = true })
  return (H.settings or {}).accounts or {}
end

--- All prompts, each with `name`, `about` and the names of its `arguments`. Starts the servers; late
--- replies are available the next time.
function M.prompts()
  if M.start({ quiet = true }) then
    H.tell("prompts", { cwd = vim.fn.getcwd(), starting = true })
    vim.wait(H.knows_prompts and 100 or 3000, function()
      return H.has_prompts
    end, 20)
    H.has_prompts = false
  end
  return H.prompts or {}
end

--- The prompts as the host reported them last. Asks it again, without waiting.
function M.known_prompts()
  M.mention("prompts", { cwd = vim.fn.getcwd(), starting = false })
  return M.prompts_so_far()
end

--- The prompts as the host reported them last.
function M.prompts_so_far()
  return H.prompts or {}
end

--- Receive the prompts from the host; if not `all`, those of servers may follow.
function M.has_prompts(prompts, all)
  H.prompts = prompts
  if all then
    H.has_prompts, H.knows_prompts = true, true
  end
  if package.loaded["parley.completion"] then
    require("parley.completion").again()
  end
end

--- Receive the agents, and the settings that Lua uses, from the started host.
function M.is_ready(agents, settings)
  H.agents, H.settings, H.ready = agents, settings, vim.uv.hrtime()
  if package.loaded["parley.chat"] then
    require("parley.chat").settings_changed()
  end
  H.act()
end

--- A setting that Lua uses. Settings from `setup` are known at once; settings from the settings
--- file are known when the host has read it.
function M.setting(name)
  return (H.settings or M.settings())[name]
end

--- Act when the settings are known: at once, unless the host must read a settings file first.
function M.when_ready(act)
  local known = H.settings or not vim.uv.fs_stat(require("parley.known").config())
  if known or not M.start() then
    act()
  else
    table.insert(H.waiting, act)
  end
end

--- The state of the host, for the health report.
function M.state()
  local ms = H.ready and H.started and (H.ready - H.started) / 1e6
  return { channel = H.channel, stderr = H.stderr, started_in_ms = ms }
end

--- Run the actions that have waited for the settings.
function H.act()
  local waiting = H.waiting
  H.waiting = {}
  for _, act in ipairs(waiting) do
    act()
  end
end

function H.tell(method, arguments)
  if arguments.buf then
    arguments.change = require("parley.mirror").take(arguments.buf)
  end
  -- An empty Lua table would be sent as a list.
  arguments = next(arguments) == nil and vim.empty_dict() or arguments
  if not pcall(vim.rpcnotify, H.channel, "parley", method, arguments) then
    H.channel = nil
    return false
  end
  return true
end

--- Start our own process. Returns the reason if it cannot start.
---@return string?
function H.spawn(python)
  local root = require("parley.place").root()
  local main = root .. "/python/parley/nvim/main.py"
  local command = { python, "-I", main, root .. "/rplugin/python3/parley_rplugin" }
  if not python:match("^/") and not python:match("^%a:") then
    return ("vim.g.parley_python is %s: neither a program in PATH nor an absolute path"):format(
      python
    )
  end
  H.started, H.ready = vim.uv.hrtime(), nil
  local ok, channel = pcall(vim.fn.jobstart, command, {
    rpc = true,
    cwd = require("parley.install").folder(), -- a Python shim would read a project's files
    on_stderr = H.on_stderr,
    on_exit = H.on_exit,
  })
  if not ok or channel <= 0 then
    local reason = ok and "it is not executable" or tostring(channel):gsub("^.*E%d+: ", "")
    return ("cannot start %s: %s. Run :ParleyInstall to create an environment"):format(
      python,
      reason
    )
  end
  H.begin(channel)
end

--- Use the host that all remote plugins share. Returns the reason if this fails.
---@return string?
function H.classic()
  local ok, channel = pcall(vim.fn._ParleyAttach)
  if not ok then
    return "vim.g.parley_host is 'python3', but the remote plugin is not registered. "
      .. "Run :UpdateRemotePlugins, restart Neovim, and see :checkhealth parley"
  end
  H.started = vim.uv.hrtime()
  H.begin(channel)
end

--- Set up a new host: send it the settings and the chats first.
function H.begin(channel)
  H.channel = channel
  require("parley.mirror").host_ended()
  H.tell("setup", H.greeting())
  for _, chat in ipairs(require("parley.chat").all()) do
    H.tell("attach", chat)
  end
  local queue = H.queue
  H.queue = {}
  for _, message in ipairs(queue) do
    H.tell(message[1], message[2])
  end
end

function H.greeting()
  local settings = M.settings()
  settings = next(settings) == nil and vim.empty_dict() or settings
  return { settings = settings, log = M.log(), cwd = vim.fn.getcwd() }
end

function H.installed(ok)
  if ok and #H.queue > 0 then
    M.start()
  elseif not ok then
    for _, message in ipairs(H.queue) do
      require("parley.handle").close(message[2].handle)
      if message[2].buf then
        require("parley.status").show(message[2].buf, "")
      end
    end
    H.queue = {}
  end
end

function H.on_stderr(_, lines)
  for _, line in ipairs(lines) do
    if line ~= "" then
      table.insert(H.stderr, line)
    end
  end
  while #H.stderr > 50 do
    table.remove(H.stderr, 1)
  end
end

function H.on_exit(channel, code)
  if channel ~= H.channel then
    return
  end
  H.channel, H.ready = nil, nil
  if vim.v.exiting ~= vim.NIL then
    return
  end
  require("parley.chat").host_ended()
  H.act() -- without the settings from the file
  if code ~= 0 and code ~= 143 then
    local last = H.stderr[#H.stderr]
    local reason = last and (": " .. last) or ""
    M.message(
      ("the Python host exited with code %d%s. See :checkhealth parley"):format(code, reason),
      "error"
    )
  end
end

--- Show the user a message.
---@param text string
---@param level? "info"|"warn"|"error"
function M.message(text, level)
  require("parley.messages").show("Parley: " .. text, vim.log.levels[(level or "info"):upper()])
end

--- Settings as plain data. A value that cannot be sent becomes its type's name, which the host
--- reports.
function H.plain(value)
  if type(value) == "function" or type(value) == "userdata" or type(value) == "thread" then
    return value == vim.NIL and value or ("<" .. type(value) .. ">")
  elseif type(value) ~= "table" then
    return value
  end
  if next(value) == nil then
    return value
  end
  local copy = {}
  for key, each in pairs(value) do
    copy[vim.islist(value) and key or tostring(key)] = H.plain(each)
  end
  return copy
end

return M
