--- A chat's questions: as a list, and as places to jump to.
local M = {}

local api = vim.api
local H = {}

--- Fill the location list with the questions, and open it at the question under the cursor.
---@param mods table the command's modifiers
function M.open(mods)
  local chat, buf = require("parley.chat"), api.nvim_get_current_buf()
  local lines, items, current = api.nvim_buf_get_lines(buf, 0, -1, true), {}, 1
  local cursor = api.nvim_win_get_cursor(0)[1]
  for row, line in ipairs(lines) do
    if chat.is_question(line) then
      items[#items + 1] = { bufnr = buf, lnum = row, col = 1, text = M.title(lines, row, buf) }
      current = row <= cursor and #items or current
    end
  end
  if #items == 0 then
    require("parley.host").message("there are no questions here", "warn")
    return
  end
  local list = { title = "Questions", items = items, idx = current, context = H.context }
  list.quickfixtextfunc = M.rows
  vim.fn.setloclist(0, {}, " ", list)
  local height = math.min(#items, 10)
  local half = math.floor(api.nvim_win_get_width(0) / 2)
  vim.cmd.lopen({ count = mods.vertical and half or height, mods = mods })
  if require("parley.window").is_row(mods) then
    api.nvim_win_set_height(0, height + vim.fn.getwininfo(api.nvim_get_current_win())[1].winbar)
  else
    height = api.nvim_win_get_height(0)
  end
  -- Put the row in the middle of the window, but leave no space below the last question.
  local top = math.min(current - math.floor(height / 2), #items - height + 1)
  vim.fn.winrestview({ topline = math.max(1, top) })
  H.dress(api.nvim_get_current_buf())
end

--- The rows of the list: the questions, all from one file, in order.
function M.rows(list)
  local items = vim.fn.getloclist(list.winid, { id = list.id, items = 0 }).items
  return vim.tbl_map(function(item)
    return item.text
  end, vim.list_slice(items, list.start_idx, list.end_idx))
end

--- A question's title: its first text after quoted lines.
---@param buf? integer the buffer that contains the lines, where they may be folded
function M.title(lines, row, buf)
  local is = require("parley.known").is
  if not lines[row] then
    return "(empty)"
  end
  local first = H.beside(lines[row])
  local n = row
  local after = buf and require("parley.folds").after(buf, row - 1)
  if after then -- skip lines quoted before the first word
    n, first = after, ""
  end
  local most = n + 5
  while first == "" and n < #lines and n < most do
    local below = lines[n + 1]
    if is(below, "question") or is(below, "answer") then
      break
    end
    after = buf and require("parley.folds").after(buf, n)
    n = after or n + 1
    first = after and "" or H.trim(below)
    most = after and n + 5 or most
  end
  first = first == "" and H.beside(lines[row]) or first
  return first == "" and "(empty)" or first
end

--- The text after a question's marker.
function H.beside(line)
  return H.trim((line:gsub("^[^:]*:", "")))
end

--- A line without spaces at its ends, and without control characters: a NUL would make it a Blob.
function H.trim(line)
  return vim.trim((line:gsub("%c", " ")))
end

--- Go `count` questions down, or up if `count` is negative, but not past the last question.
function M.jump(count)
  local chat = require("parley.chat")
  local step, left, target = count > 0 and 1 or -1, math.abs(count), nil
  local last = api.nvim_buf_line_count(0)
  local row = api.nvim_win_get_cursor(0)[1] + step
  while left > 0 and row >= 1 and row <= last do
    if chat.is_question(api.nvim_buf_get_lines(0, row - 1, row, true)[1]) then
      left, target = left - 1, row
    end
    row = row + step
  end
  if target then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { target, 0 })
  end
end

H.context = { parley = "outline" }

--- Set the list's look, and the key that closes it. If the window later shows another list, Vim
--- sets the syntax again, and `q` records a macro as usual.
function H.dress(buf)
  vim.bo[buf].syntax = "" -- the quickfix syntax takes a row without `|` for a file name
  vim.wo[0][0].wrap = false
  if vim.fn.maparg("q", "n", false, true).buffer ~= 1 then
    vim.keymap.set("n", "q", function()
      local ours = vim.deep_equal(vim.fn.getloclist(0, { context = 0 }).context, H.context)
      return ours and "<Cmd>lua require('parley.outline').close()<CR>" or "q"
    end, { buffer = buf, expr = true, desc = "Parley: close this list" })
  end
end

--- Close the list; if it is the last window, show the chat in it.
function M.close()
  if not pcall(vim.cmd.lclose) then
    local item = vim.fn.getloclist(0, { idx = 0, items = 0 })
    pcall(vim.cmd.buffer, item.items[math.max(item.idx, 1)].bufnr)
  end
end

return M
