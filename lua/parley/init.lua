--- Parley: a plain Markdown file is the conversation with a language model.
--- The public functions; each is also a command. All but `setup` act on the current buffer.
if vim.fn.has("nvim-0.10") == 0 then
  return require("parley.version").module()
end

local M = {}

--- Settings, as a table; see |parley-settings|. May be called again, and need not be called at all.
---@param settings? table
function M.setup(settings)
  M.given = settings or {}
  -- Only a host that is there already has to hear of it; at start nothing else is loaded.
  if package.loaded["parley.host"] then
    require("parley.host").setup()
  end
end

--- What `setup` was given; defaults and checks are the host's.
M.given = {}

--- Open a new chat in the folder of chats.
---@param topic? string
---@param opts? parley.Opening
function M.new(topic, opts)
  require("parley.chat").open(topic or "", "", opts or {})
end

---@class parley.Opening
---@field mods? table modifiers, as |nvim_cmd()| takes them: `{ vertical = true }`
---@field lines? integer[] the first and the last line of this buffer that the question is about

--- Ask a question in a new chat; with lines, put them into the chat that was used last. Without a question,
--- the cursor is where it is typed.
---@param question? string
---@param opts? parley.Opening
function M.ask(question, opts)
  local chat = require("parley.chat")
  local buf = (opts or {}).lines and chat.last() or nil
  chat.open("", question or "", opts or {}, buf)
end

--- Go to the empty question at the end of this buffer, which is written where there is none.
function M.question()
  require("parley.chat").question()
end

--- Move the exchange under the cursor one turn on.
---@param opts? { regenerate?: boolean } regenerate: give its answer anew
function M.respond(opts)
  require("parley.chat").ask("respond", { regenerate = (opts or {}).regenerate or false })
end

--- Decide on the tool calls that wait, as the keys of the same name do.
---@param choice 'yA'|'ya'|'yo'|'yO'|'yn'|'yN'
---@param reason? string with a no: told to the model
function M.approve(choice, reason)
  require("parley.chat").ask("choose", { key = choice, rule = "command", reason = reason or "" })
end

--- Have the model sum up all exchanges but the last few, each in a line of its answer.
---@param keep? integer|string how many of the last are left as they are
function M.compact(keep)
  require("parley.chat").ask("compact", { keep = tostring(keep or "") })
end

--- Stop the turn of this chat.
function M.stop()
  require("parley.chat").ask("stop", {})
end

--- Choose the agent this chat talks to; without a name, from a list.
---@param name? string
---@param opts? { stays?: boolean } stays: its file says so, too; without a name, whom it talks to now
function M.agent(name, opts)
  local stays = opts ~= nil and opts.stays == true
  require("parley.chat").ask("agent", { agent = name ~= "" and name or nil, stays = stays })
end

--- Show the request that `respond` would send.
function M.request()
  require("parley.chat").ask("request", {})
end

--- Show the MCP servers and their tools; opened from a chat, they can be switched on and off for it.
function M.tools()
  require("parley.chat").ask("tools", { cwd = vim.fn.getcwd() }, { anywhere = true })
end

--- Add an MCP server to the settings, start it, and show the servers.
---@param words string[] a name; for a server that is not known, `--` and a command, `--url` or `--from`
function M.add_server(words)
  require("parley.chat").ask("add_server", { cwd = vim.fn.getcwd(), words = words }, { anywhere = true })
end

--- Sign in at an MCP server, in the browser; where that goes on, leave it.
---@param server string
function M.login(server)
  require("parley.host").notify("sign_in", { server = server, cwd = vim.fn.getcwd() })
end

--- Put a prompt of an MCP server into the question under the cursor.
---@param words? string[] its name, `server/prompt`, and `argument=value`; what is missing is asked for
function M.prompt(words)
  require("parley.chat").ask("prompt", { words = words or {} })
end

--- Attach a picture to the question under the cursor; without a path, the clipboard's.
---@param path? string
function M.image(path)
  require("parley.chat").ask("image", { path = path and path ~= "" and vim.fs.normalize(path) or "" })
end

--- Show what was approved, run and answered in this chat.
function M.log()
  require("parley.chat").ask("log", {})
end

--- List the questions of this chat in the location list.
---@param opts? { mods?: table } mods: the modifiers of a command, for its window
function M.outline(opts)
  require("parley.outline").open(opts and opts.mods or {})
end

--- Go to the next question, `count` questions further down, or up if negative.
---@param count integer
function M.jump(count)
  require("parley.outline").jump(count)
end

--- Pick a chat by its topic, or of those that have some words in their text.
---@param words? string
function M.find(words)
  local host = require("parley.host")
  host.when_ready(function()
    host.notify("find", { dir = require("parley.chat").dir(), words = words or "" })
  end)
end

--- Copy this chat, down to the exchange under the cursor, into a new chat beside it.
function M.fork()
  local newline = vim.bo.fileformat == "dos" and "\r\n" or "\n"
  require("parley.chat").ask("fork", { newline = newline })
end

--- Write this chat as one HTML page that needs nothing else.
---@param path? string by default the chat's own, with the ending .html
---@param opts? { force?: boolean } force: overwrite a file that is there
function M.export(path, opts)
  require("parley.chat").export(path or "", (opts or {}).force or false)
end

--- Make or update the Python environment.
---@param opts? { force?: boolean }
function M.install(opts)
  local force = (opts or {}).force or false
  local done = force and require("parley.host").stop or nil -- the next use starts the new one
  require("parley.install").run({ force = force, loud = true, done = done })
end

--- Whether a Markdown buffer is a chat, also before Parley has looked at it.
---@param buf? integer
---@return boolean
function M.is_chat(buf)
  return require("parley.chat").is_chat(buf or 0)
end

--- For 'foldexpr': the folds of a chat, where folds are not made by hand; see |parley-folds|.
---@return string|integer
function M.foldexpr()
  return require("parley.folds").expr()
end

--- What this chat is doing, for a status line; "" where there is nothing to say.
---@param buf? integer
---@return string
function M.status(buf)
  return require("parley.status").line(buf)
end

return M
