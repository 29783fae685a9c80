--- The questions of a chat: as a list, and as places to jump to.
local M = {}

local api = vim.api

--- Fill and open the location list with the questions.
function M.open()
  local chat, buf = require("parley.chat"), api.nvim_get_current_buf()
  local lines, items = api.nvim_buf_get_lines(buf, 0, -1, true), {}
  for row, line in ipairs(lines) do
    if chat.is_question(line) then
      items[#items + 1] = { bufnr = buf, lnum = row, col = 1, text = M.title(lines, row) }
    end
  end
  if #items == 0 then
    require("parley.host").message("there are no questions here", "warn")
    return
  end
  vim.fn.setloclist(0, {}, " ", { title = "Questions", items = items, quickfixtextfunc = M.rows })
  vim.cmd.lopen()
end

--- The rows of the list: they are all of one file, so its name is left out.
function M.rows(list)
  local items = vim.fn.getloclist(list.winid, { id = list.id, items = 0 }).items
  return vim.tbl_map(function(item)
    return ("%4d| %s"):format(item.lnum, item.text)
  end, vim.list_slice(items, list.start_idx, list.end_idx))
end

--- What a question is known by: the first text of it.
function M.title(lines, row)
  local chat = require("parley.chat")
  local first = lines[row]:gsub("^[^:]*:%s*", "")
  local n = row
  while first == "" and n < #lines and n < row + 5 and not chat.is_question(lines[n + 1]) do
    n = n + 1
    first = vim.trim(lines[n])
  end
  return first == "" and "(empty)" or (first:gsub("%c", " ")) -- a NUL would make it a Blob
end

--- Go to the next question, `count` of them down, or up if negative; as far as there are any.
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

return M
