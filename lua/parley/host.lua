--- The Python process: started when it is first needed, told things, never waited for.
local M = {}

local H = { channel = nil, settings = {}, queue = {}, agents = {}, stderr = {}, started = nil, ready = nil }

M.root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h")

function M.setup(settings)
  H.settings = H.plain(settings)
  M.mention("setup", H.greeting())
  if package.loaded["parley.chat"] then
    require("parley.chat").settings_changed()
  end
end

--- The settings as they were given to `setup`.
function M.settings()
  return H.settings
end

--- Tell the host; it is started, and before that installed, if need be.
---@param method string
---@param arguments table
function M.notify(method, arguments)
  if M.start() and H.tell(method, arguments) then
    return
  elseif M.start() then -- a shared host ends without a word to us: this is a new one
    H.tell(method, arguments)
  else
    table.insert(H.queue, { method, arguments })
  end
end

--- Tell the host if it runs; what is told only matters to one that does.
function M.mention(method, arguments)
  if H.channel then
    H.tell(method, arguments)
  end
end

--- Start the host, if it does not run.
---@param opts? { quiet?: boolean } quiet: not if it had to be installed first
---@return boolean running
function M.start(opts)
  if H.channel then
    return true
  end
  if vim.g.parley_host == "python3" then
    return H.classic()
  end
  local python = require("parley.install").python()
  if python then
    return H.spawn(python)
  end
  if not (opts and opts.quiet) then
    require("parley.install").run({ done = H.installed })
  end
  return false
end

--- End the host; the next use starts a new one.
function M.stop()
  if H.channel and vim.g.parley_host ~= "python3" then
    vim.fn.jobstop(H.channel)
  end
end

--- The host's log file.
function M.log()
  return vim.fs.joinpath(vim.fn.stdpath("log"), "parley.log")
end

--- The names of the agents, as far as they are known.
function M.agents()
  M.start({ quiet = true })
  return H.agents
end

--- Told by the host once it runs.
function M.is_ready(agents)
  H.agents, H.ready = agents, vim.uv.hrtime()
end

--- For the health report: how the host is.
function M.state()
  local ms = H.ready and H.started and (H.ready - H.started) / 1e6
  return { channel = H.channel, stderr = H.stderr, started_in_ms = ms }
end

function H.tell(method, arguments)
  -- An empty table would cross the border as a list.
  arguments = next(arguments) == nil and vim.empty_dict() or arguments
  if not pcall(vim.rpcnotify, H.channel, "parley", method, arguments) then
    H.channel = nil
    return false
  end
  return true
end

function H.spawn(python)
  local main = M.root .. "/python/parley/drivers/nvim/main.py"
  H.started, H.ready = vim.uv.hrtime(), nil
  local ok, channel = pcall(
    vim.fn.jobstart,
    { python, "-I", main, M.root .. "/rplugin/python3/parley_rplugin" },
    { rpc = true, on_stderr = H.on_stderr, on_exit = H.on_exit }
  )
  if not ok or channel <= 0 then
    local why = ok and "it cannot be run" or tostring(channel)
    M.message(("cannot start %s: %s. :ParleyInstall makes a new environment"):format(python, why), "error")
    return false
  end
  H.begin(channel)
  return true
end

function H.classic()
  local ok, channel = pcall(vim.fn._ParleyAttach)
  if not ok then
    M.message(
      "vim.g.parley_host is 'python3', but the remote plugin is not there: run :UpdateRemotePlugins, "
        .. "restart, and see :checkhealth parley",
      "error"
    )
    return false
  end
  H.started = vim.uv.hrtime()
  H.begin(channel)
  return true
end

--- Greet a new host, and tell it what it has to know of before anything else.
function H.begin(channel)
  H.channel = channel
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
  local settings = vim.tbl_isempty(H.settings) and vim.empty_dict() or H.settings
  return { settings = settings, log = M.log() }
end

function H.installed(ok)
  if ok and #H.queue > 0 then
    M.start()
  elseif not ok then
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
  if code ~= 0 and code ~= 143 then
    local last = H.stderr[#H.stderr]
    local said = last and (": " .. last) or ""
    M.message(("the Python host ended with code %d%s. See :checkhealth parley"):format(code, said), "error")
  end
end

--- Tell the user something.
---@param text string
---@param level? "info"|"warn"|"error"
function M.message(text, level)
  require("parley.messages").show("Parley: " .. text, vim.log.levels[(level or "info"):upper()])
end

--- Settings as data: what cannot cross the border is named, so that the host can complain about it.
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
