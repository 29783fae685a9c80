--- The page with the models of all providers: draws the host's lines, and reports the user's choice.
local M = {}

local H = { name = "models" }

--- Draw the page. If the user has closed it, it stays closed, unless `opening` is set.
---@param chat integer the chat that gets the chosen model
---@param lines string[]
---@param agents string[] the agent of each line; "" if the line has no model
---@param opening boolean
function M.draw(chat, lines, agents, opening)
  local pages = require("parley.pages")
  local win, buf = pages.window(H.name, lines, opening, H.map)
  if not win then
    return
  end
  H.chat, H.agents = chat, agents
  if not opening then
    pages.fill(buf, lines)
  end
  pages.fit(win)
end

function H.map(buf)
  local opts = { buffer = buf, nowait = true }
  opts.desc = "Parley: use the model under the cursor in the chat"
  vim.keymap.set("n", "<CR>", H.choose, opts)
  opts.desc = "Parley: ask the providers for their models again"
  vim.keymap.set("n", "R", function()
    H.send("models", { refresh = true })
  end, opts)
end

--- Let the chat use the model under the cursor, and close the page.
function H.choose()
  local agent = H.agents[vim.api.nvim_win_get_cursor(0)[1]] or ""
  if agent ~= "" then
    require("parley.pages").close(H.name)
    H.send("agent", { agent = agent, stays = false })
  end
end

--- Send the host a message about the chat, if it is still open.
function H.send(method, arguments)
  if vim.api.nvim_buf_is_loaded(H.chat) then
    arguments.buf, arguments.name = H.chat, vim.api.nvim_buf_get_name(H.chat)
    require("parley.host").notify(method, arguments)
  end
end

return M
