--- Markers, keys and folders, which have to be known before the host runs. Tests hold them against Python's.
local M = {}

--- How lines of a chat begin, up to the colon, as they are written; `chat/grammar.py` has what they mean.
M.markers = {
  question = "💬",
  answer = "🤖",
  thinking = "🧠",
  proposal = "❓",
  result = "🛠️",
  note = "🔒",
  summary = "📝",
}

--- What may stand between `@@` and is no file; `chat/references.py` has what it means.
M.live = { "buffer", "selection", "diagnostics", "diff" }

--- The well-known MCP servers that |:ParleyServerAdd| completes; `tools/known_servers.py` has what they are.
M.servers =
  { "files", "memory", "thinking", "browser", "fetch", "git", "time", "github", "context7", "linear" }

--- The default of the setting `start_insert`.
M.start_insert = true

--- The defaults of the settings `keys.*`: a chat has its keys at once.
M.keys = {
  respond = "<C-g><C-g>",
  stop = "<C-g>x",
  agent = "<C-g>a",
  outline = "<C-g>t",
  help = "g?",
  question = "<C-g>q",
  question_object = "q",
  answer_object = "r",
  call_object = "T",
  code_object = "c",
  choices = { enabled = true, ya = "ya", yA = "yA", yo = "yo", yO = "yO", yn = "yn", yN = "yN" },
}

local variation = "\239\184\143" -- U+FE0F, which may follow the emoji of a marker or not

--- A marker without U+FE0F: how each spelling of it begins.
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

--- The folder of chats, where the settings name none.
---@return string
function M.chats()
  return vim.fs.joinpath(M.base("XDG_DATA_HOME", "~/.local/share"), "parley", "chats")
end

--- The file of settings.
---@return string
function M.config()
  return vim.fs.joinpath(M.base("XDG_CONFIG_HOME", "~/.config"), "parley", "config.toml")
end

--- The folder of the host's Python environments.
---@return string
function M.environments()
  return vim.fs.joinpath(vim.fn.stdpath("data"), "parley")
end

--- The log of host and installation; the host is told where it is.
---@return string
function M.log()
  return vim.fs.joinpath(vim.fn.stdpath("log"), "parley.log")
end

--- A folder of the user's, by its variable; else the one that is meant without.
function M.base(variable, otherwise)
  local folder = vim.env[variable]
  return folder and folder ~= "" and folder or vim.fn.expand(otherwise)
end

return M
