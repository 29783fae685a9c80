--- The page with the files that a chat's calls changed, and the diffs of these files. Draws the
--- host's lines, and reports the user's actions to the host.
local M = {}

local api = vim.api
local H = { name = "changes", marks = {} }

--- Draw the page. If the user has closed it, it stays closed, unless `opening` is set.
---@param page { lines: string[], marks: { row: integer, number: integer }[] }
---@param opening boolean
function M.draw(page, opening)
  local pages = require("parley.pages")
  local win, buf = pages.window(H.name, page.lines, opening, H.map)
  if not win then
    return
  end
  api.nvim_win_call(win, function()
    local number, view = H.here(), vim.fn.winsaveview()
    if not opening then
      pages.fill(buf, page.lines)
    end
    H.marks = page.marks
    pages.fit(win)
    vim.fn.winrestview(view)
    H.go(opening and (page.marks[1] or {}).number or number)
  end)
end

function H.map(buf)
  local function key(lhs, about, act)
    vim.keymap.set("n", lhs, act, { buffer = buf, nowait = true, desc = "Parley: " .. about })
  end
  local function tell(method)
    return function()
      local number = H.here()
      if number then
        require("parley.host").notify(method, { number = number })
      end
    end
  end
  key("<CR>", "show this file's changes as a diff", tell("change_diff"))
  key("u", "revert this file, or repeat its changes", tell("change_revert"))
  key("gq", "put all hunks into the quickfix list", function()
    require("parley.host").notify("change_hunks", {})
  end)
end

--- The number of the file under the cursor.
---@return integer?
function H.here()
  local row, number = vim.fn.line(".") - 1, nil
  for _, mark in ipairs(H.marks) do
    if mark.row > row then
      break
    end
    number = mark.number
  end
  return number
end

--- Put the cursor on a file.
function H.go(number)
  for _, mark in ipairs(H.marks) do
    if mark.number == number then
      api.nvim_win_set_cursor(0, { mark.row + 1, 0 })
    end
  end
end

--- Show a file before and after its changes.
---@param diff { path: string, before?: string, after: string }
function M.diff(diff)
  require("parley.window").try(require("parley.diff_tab").open, {
    path = diff.path,
    before = diff.before,
    after = diff.after,
    before_title = "before",
    title = "after",
  })
end

--- Put hunks into the quickfix list, and open it.
---@param items table[]
---@param title string
function M.hunks(items, title)
  require("parley.window").try(function()
    vim.fn.setqflist({}, " ", { items = items, title = title })
    vim.cmd("botright copen")
  end)
end

--- Show a file that has changed since a call changed it: its buffer, the text that the call left,
--- and the text that a revert would restore.
---@param path string
---@param left string
---@param restored string
function M.three_way(path, left, restored)
  require("parley.window").try(function()
    local buf = require("parley.window").load(path)
    local name = require("parley.context").name(buf)
    require("parley.diff_tab").open({
      path = name,
      live_buf = buf,
      base = left,
      base_title = "after call",
      after = restored,
      title = "before",
      on_close = function()
        require("parley.apply").closed(buf, name)
      end,
    })
  end)
end

return M
