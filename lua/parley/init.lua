--- Parley: a plain Markdown file is the conversation with a language model.
---
--- The public functions. Most are also commands, and act on the current buffer.
if vim.fn.has("nvim-0.10") == 0 then
  return require("parley.version").module()
end

local M = {}

--- Set the settings; see |parley-settings|. Calling this function is optional, and you may call it
--- again.
---@param settings? table
function M.setup(settings)
  M.given = settings or {}
  -- Only a running host needs the settings. At startup, load nothing else.
  if package.loaded["parley.host"] then
    require("parley.host").setup()
  end
end

--- The table given to `setup`; the host has the defaults and checks the values.
M.given = {}

--- Open a new chat in the chat folder.
---@param topic? string
---@param opts? parley.Opening
function M.new(topic, opts)
  require("parley.chat").open(topic or "", "", opts or {})
end

---@class parley.Opening
---@field mods? table modifiers, as for |nvim_cmd()|: `{ vertical = true }`
---@field lines? integer[] the first and the last line of this buffer to put into the question
---@field rewrite? integer the number of the rewrite for which the question asks

--- Ask a question in a new chat or, with lines, put them into the chat that was used last. Without
--- a question, put the cursor where the user types it.
---@param question? string
---@param opts? parley.Opening
function M.ask(question, opts)
  local chat = require("parley.chat")
  local buf = (opts or {}).lines and chat.last() or nil
  chat.open("", question or "", opts or {}, buf)
end

--- Go to the empty question at the end of this buffer, or write an empty question.
function M.question()
  require("parley.chat").question()
end

--- Continue the exchange under the cursor.
---@param opts? { regenerate?: boolean, agent?: string } regenerate: replace its answer; agent: the
---agent that regenerates it, instead of the chat's
function M.respond(opts)
  require("parley.chat").ask(
    "respond",
    { regenerate = (opts or {}).regenerate or false, agent = (opts or {}).agent or "" }
  )
end

--- Decide on the waiting tool calls, or on the change under the cursor, like the keys with the same
--- names.
---@param choice 'yA'|'ya'|'yo'|'yO'|'yn'|'yN'
---@param reason? string for declining: sent to the model
function M.approve(choice, reason)
  if require("parley.keys").decided(choice) then
    return
  end
  require("parley.chat").ask("choose", { key = choice, rule = "command", reason = reason or "" })
end

--- Compare the code block under the cursor with the file that it names, as a diff in a tab page.
---@param opts? { is_whole?: boolean } is_whole: the block is the whole new text of the file
function M.apply(opts)
  require("parley.chat").ask("apply", { whole = (opts or {}).is_whole or false })
end

--- Widen the approval of the call under the cursor; elsewhere, list permissions to remove some.
function M.allow()
  require("parley.chat").ask("allow", { cwd = vim.fn.getcwd() }, { anywhere = true })
end

--- Have the model rewrite lines of this buffer, in the chat that was used last; the answer is shown
--- as a diff over the lines, which `ya` takes.
---@param instruction string
---@param opts parley.Opening with lines
function M.rewrite(instruction, opts)
  require("parley.rewrite").start(instruction, opts)
end

--- Have the model summarize all exchanges except the last few, each in a line of its answer.
---@param keep? integer|string how many of the last exchanges stay unchanged
function M.compact(keep)
  require("parley.chat").ask("compact", { keep = tostring(keep or "") })
end

--- Stop the turn of this chat; outside chats, of the chat used last.
function M.stop()
  require("parley.chat").ask("stop", {}, { last = true })
end

--- Choose the agent of this chat; without a name, from a list.
---@param name? string
---@param opts? { stays?: boolean } stays: write the agent (by default the current one) into the file
function M.agent(name, opts)
  local stays = opts ~= nil and opts.stays == true
  require("parley.chat").ask("agent", { agent = name ~= "" and name or nil, stays = stays })
end

--- Show the request that `respond` would send.
function M.request()
  require("parley.chat").ask("request", {})
end

--- Show the MCP servers and their tools, which can be switched on and off for this chat.
function M.tools()
  require("parley.chat").ask("tools", { cwd = vim.fn.getcwd() }, { anywhere = true })
end

--- Add an MCP server to the settings, start it, and show the servers.
---@param words string[] a name; for an unknown server, `--` and a command, `--url` or `--from`
function M.add_server(words)
  require("parley.chat").ask(
    "add_server",
    { cwd = vim.fn.getcwd(), words = words },
    { anywhere = true }
  )
end

--- Sign in to a provider, an MCP server or an agent of another program, or cancel a running
--- sign-in.
---@param name string
function M.login(name)
  require("parley.host").notify("login", { account = name, cwd = vim.fn.getcwd() })
end

--- Sign out of a provider, an MCP server or an agent of another program.
---@param name string
function M.logout(name)
  require("parley.host").notify("logout", { account = name, cwd = vim.fn.getcwd() })
end

--- Put a prompt into the question under the cursor.
---@param words? string[] `name` or `server/prompt`, then `argument=value`; asks for missing arguments
function M.prompt(words)
  require("parley.chat").ask("prompt", { words = words or {} })
end

--- Attach a picture to the question under the cursor; without a path, from the clipboard.
---@param path? string
function M.image(path)
  require("parley.chat").ask(
    "image",
    { path = path and path ~= "" and vim.fs.normalize(path) or "" }
  )
end

--- Show this chat's choices, calls and requests; outside chats, those of the chat used last.
function M.log()
  require("parley.chat").ask("log", {}, { last = true })
end

--- List the files that this chat's calls changed; outside chats, those of the chat used last.
function M.changes()
  require("parley.chat").ask("changes", {}, { last = true })
end

--- Revert the changes that the calls of the exchange under the cursor made to files.
---@param opts? { repeats?: boolean } repeats: repeat reverted changes instead
function M.revert(opts)
  require("parley.chat").ask("revert", { repeats = (opts or {}).repeats or false })
end

--- List this chat's questions in the location list.
---@param opts? { mods?: table } mods: the command's modifiers, for its window
function M.outline(opts)
  require("parley.outline").open(opts and opts.mods or {})
end

--- Go `count` questions down, or up if `count` is negative.
---@param count integer
function M.jump(count)
  require("parley.outline").jump(count)
end

--- Pick a chat from a list of all chats, or of the chats that contain some words.
---@param words? string
function M.find(words)
  local host = require("parley.host")
  host.when_ready(function()
    local dir, cwd = require("parley.chat").dir(), vim.fn.getcwd()
    host.notify("find", { dir = dir, words = words or "", cwd = cwd })
  end)
end

--- Copy this chat, up to the exchange under the cursor, into a new chat next to it.
function M.fork()
  local newline = vim.bo.fileformat == "dos" and "\r\n" or "\n"
  require("parley.chat").ask("fork", { newline = newline })
end

--- Ask the question under the cursor to several agents at once, each in a fork of this chat, and
--- show their answers side by side as a diff.
---@param agents string[]
function M.compare(agents)
  local newline = vim.bo.fileformat == "dos" and "\r\n" or "\n"
  require("parley.chat").ask("compare", { newline = newline, agents = agents })
end

--- Write this chat as one self-contained HTML page.
---@param path? string by default the chat's own, with the extension .html
---@param opts? { force?: boolean } force: overwrite an existing file
function M.export(path, opts)
  require("parley.chat").export(path or "", (opts or {}).force or false)
end

--- Create or update the Python environment.
---@param opts? { force?: boolean }
function M.install(opts)
  local force = (opts or {}).force or false
  local done = force and require("parley.host").stop or nil -- the next use starts the new one
  require("parley.install").run({ force = force, loud = true, done = done })
end

--- Whether a Markdown buffer is a chat, even before Parley has read it.
---@param buf? integer
---@return boolean
function M.is_chat(buf)
  return require("parley.chat").is_chat(buf or 0)
end

--- For 'foldexpr': the folds of a chat without manual folds; see |parley-folds|.
---@return string|integer
function M.foldexpr()
  return require("parley.folds").expr()
end

--- The status of this chat, for a status line; "" if there is nothing to say.
---@param buf? integer
---@return string
function M.status(buf)
  return require("parley.status").line(buf)
end

return M
