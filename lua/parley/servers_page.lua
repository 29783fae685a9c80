--- The page with servers and tools: draws the host's lines, and reports the user's actions to the
--- host.
local M = {}

local api = vim.api
local H = { name = "tools", marks = {}, chat = nil }

---@class parley.PageMark
---@field row integer the row where the subject begins
---@field server string
---@field tool string "" for the server itself

--- Draw the page. If the user has closed it, it stays closed, unless `opening` is set.
---@param page { lines: string[], marks: parley.PageMark[], folds: { first: integer, last: integer }[] }
---@param chat? integer the chat from which the page was opened
---@param opening boolean
function M.draw(page, chat, opening)
  local pages = require("parley.pages")
  local win, buf = pages.window(H.name, page.lines, opening, H.begin)
  if not win then
    return
  end
  api.nvim_win_call(win, function()
    local open, view = H.unfolded(), vim.fn.winsaveview()
    if not opening then
      pages.fill(buf, page.lines)
    end
    H.marks, H.chat = page.marks, chat
    H.fold(page.folds, opening and {} or open)
    pages.fit(win)
    vim.fn.winrestview(view)
    if opening and page.marks[1] then -- the first entry, because keys act on entries
      api.nvim_win_set_cursor(0, { page.marks[1].row + 1, 0 })
    end
  end)
end

--- Set the page's keys and folds.
function H.begin(buf)
  local function key(lhs, about, act)
    vim.keymap.set("n", lhs, act, { buffer = buf, nowait = true, desc = "Parley: " .. about })
  end
  key("x", "switch the server or tool on or off for this chat", H.switch)
  key("<Space>", "switch the server or tool on or off for this chat", H.switch)
  key("R", "restart the server", function()
    local server = H.here()
    if server then
      require("parley.host").notify("restart", { server = server })
    end
  end)
  key("s", "sign in to the server, or cancel", function()
    local server = H.here()
    if server then
      require("parley.host").notify("sign_in", { server = server, cwd = vim.fn.getcwd() })
    end
  end)
  key("S", "sign out of the server", function()
    local server = H.here()
    if server then
      require("parley.host").notify("sign_out", { server = server })
    end
  end)
  key("t", "trust the project's servers", function()
    require("parley.host").notify("trust", {})
  end)
  key("<CR>", "details", function()
    H.toggle()
    require("parley.pages").fit(api.nvim_get_current_win())
  end)
  local wo = vim.wo[vim.fn.bufwinid(buf)][0]
  wo.foldmethod, wo.foldenable, wo.foldminlines = "manual", true, 0
  wo.foldtext, wo.fillchars, wo.conceallevel = "", "fold: ", 0
end

--- Unfold or fold the entry under the cursor; for a server, all its parts.
function H.toggle()
  local server, tool = H.here()
  local row = vim.fn.line(".")
  if tool ~= "" or vim.fn.foldlevel(row) > 0 then
    pcall(vim.cmd.normal, { "za", bang = true })
    return
  end
  local last, act = vim.fn.line("$"), "foldclose"
  for _, mark in ipairs(H.marks) do
    if mark.row >= row and mark.server ~= server then
      last = mark.row
      break
    end
  end
  for below = row, last do
    act = vim.fn.foldclosed(below) ~= -1 and "foldopen" or act
  end
  pcall(vim.cmd[act], { range = { row, last } })
end

function H.switch()
  local server, tool = H.here()
  if not server then
    return
  elseif not H.chat or not api.nvim_buf_is_loaded(H.chat) then
    require("parley.host").message(
      "this page does not belong to a chat. Run :ParleyTools in a chat",
      "warn"
    )
    return
  end
  local handle = require("parley.handle").open(H.chat, 0)
  require("parley.host").notify("switch", { handle = handle, server = server, tool = tool })
end

--- The entry under the cursor; a closed fold counts as its first line.
---@return string? server, string? tool "" for the server itself
function H.here()
  local row, server, tool = vim.fn.line(".") - 1, nil, nil
  for _, mark in ipairs(H.marks) do
    if mark.row > row then
      break
    end
    server, tool = mark.server ~= "" and mark.server or nil, mark.tool
  end
  return server, tool
end

--- The entries of the open folds.
function H.unfolded()
  local open = {}
  for _, mark in ipairs(H.marks) do
    local row = mark.row + 1
    if vim.fn.foldlevel(row) > 0 and vim.fn.foldclosed(row) == -1 then
      open[mark.server .. "/" .. mark.tool] = true
    end
  end
  return open
end

function H.fold(folds, open)
  local keep = {}
  for _, mark in ipairs(H.marks) do
    keep[mark.row] = open[mark.server .. "/" .. mark.tool]
  end
  vim.cmd.normal({ "zE", bang = true })
  for _, fold in ipairs(folds) do
    vim.cmd.fold({ range = { fold.first + 1, fold.last + 1 } })
    if keep[fold.first] then
      vim.cmd.foldopen({ range = { fold.first + 1 } })
    end
  end
end

return M
