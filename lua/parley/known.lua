--- Markers, keys and folders that Lua needs before the host runs. A test compares them with
--- Python's.
local M = {}

--- How structural lines begin, up to the colon; `chat/grammar.py` defines their meaning.
M.markers = {
  question = "💬",
  answer = "🤖",
  thinking = "🧠",
  proposal = "❓",
  result = "🛠️",
  note = "🔒",
  summary = "📝",
}

--- The words in a proposal's brackets for calls that others ran; `chat/transcript.py` defines them.
M.runners = { "provider", "agent" }

--- The names between `@@` that are not files; `chat/references.py` defines their meaning.
M.live = { "buffer", "selection", "diagnostics", "diff" }

--- The well-known MCP servers that |:ParleyServerAdd| completes; `tools/known_servers.py` has their
--- details.
M.servers = {
  "files",
  "memory",
  "thinking",
  "browser",
  "fetch",
  "git",
  "time",
  "github",
  "context7",
  "linear",
}

--- The default of the setting `start_insert`.
M.start_insert = true

--- The defaults of the settings `keys.*`, because a chat has its keys at once.
M.keys = {
  respond = "<C-g><C-g>",
  stop = "<C-g>x",
  agent = "<C-g>a",
  apply = "<C-g>p",
  outline = "<C-g>t",
  help = "g?",
  question = "<C-g>q",
  question_object = "q",
  answer_object = "r",
  call_object = "T",
  code_object = "c",
  choices = { enabled = true, ya = "ya", yA = "yA", yo = "yo", yO = "yO", yn = "yn", yN = "yN" },
}

local variation = "\239\184\143" -- U+FE0F, which may follow the emoji of a marker

--- A marker without U+FE0F, with which all its spellings begin.
---@param name string
---@return string
function M.start(name)
  return (M.markers[name]:gsub(variation, ""))
end

--- Whether a line begins with a marker and its colon.
---@param line string
---@param name string
function M.is(line, name)
  local start = M.start(name)
  return vim.startswith(line, start)
    and (vim.startswith(line, start .. ":") or vim.startswith(line, start .. variation .. ":"))
end

--- The chat folder, if the settings name none.
---@return string
function M.chats()
  return vim.fs.joinpath(M.base("XDG_DATA_HOME", "~/.local/share"), "parley", "chats")
end

--- The settings file.
---@return string
function M.config()
  return vim.fs.joinpath(M.base("XDG_CONFIG_HOME", "~/.config"), "parley", "config.toml")
end

--- The folder of the host's Python environments.
---@return string
function M.environments()
  return vim.fs.joinpath(vim.fn.stdpath("data"), "parley")
end

--- The log file for host and installation; the host receives its path.
---@return string
function M.log()
  return vim.fs.joinpath(vim.fn.stdpath("log"), "parley.log")
end

--- A user folder: from the variable, else the default.
function M.base(variable, otherwise)
  local folder = vim.env[variable]
  return folder and folder ~= "" and folder or vim.fn.expand(otherwise)
end

return M
