--- The page with permissions: draws the host's lines, and reports the user's removals to the host.
local M = {}

local H = { name = "permissions", marks = {} }

--- Draw the page. If the user has closed it, it stays closed, unless `opening` is set.
---@param lines string[]
---@param marks { row: integer, number: integer }[] the row of each permission
---@param opening boolean
function M.draw(lines, marks, opening)
  local pages = require("parley.pages")
  local win, buf = pages.window(H.name, lines, opening, H.map)
  if not win then
    return
  end
  H.marks = marks
  if not opening then
    pages.fill(buf, lines)
  elseif marks[1] then
    vim.api.nvim_win_set_cursor(win, { marks[1].row + 1, 0 })
  end
  pages.fit(win)
end

function H.map(buf)
  for _, lhs in ipairs({ "x", "d" }) do
    local desc = "Parley: remove the permission"
    vim.keymap.set("n", lhs, H.remove, { buffer = buf, nowait = true, desc = desc })
  end
end

--- Remove the permission under the cursor.
function H.remove()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  for _, mark in ipairs(H.marks) do
    if mark.row == row then
      require("parley.host").notify("disallow", { number = mark.number })
    end
  end
end

return M
