--- Marks queued questions, which are asked when the answer above them is complete. A visible mark
--- on a question's first line moves with the text and disappears with its line. The host decides
--- when to ask.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.queue")
local handles = require("parley.handle")
local H = {}

--- The changes since the text of `tick`, the places of the marks from the top, and the places of
--- two handles.
---@param handle? integer a handle at a question
---@param turn? integer the running turn's handle
---@return table
function M.read(buf, tick, handle, turn)
  local reply = require("parley.edit").look(buf, tick)
  if not reply.gone then
    reply.marks = H.marks(buf)
    reply.row, reply.above = H.place(handle), H.place(turn)
  end
  return reply
end

--- Mark the line `up` rows above a handle, and close the handle.
---@param id integer
---@param up integer
---@param words string the text drawn before the line
function M.put(id, up, words)
  local handle = handles.get(id)
  local row = handle and H.place(id) - up
  if handle and require("parley.buffer_rows").has(handle.buf, row) then
    local line = require("parley.buffer_rows").line(handle.buf, row)
    api.nvim_buf_set_extmark(handle.buf, ns, row, 0, {
      end_row = row,
      end_col = #line,
      invalidate = true,
      virt_text = { { words, "ParleyHint" } },
      virt_text_pos = "inline", -- there may be no room after the line
    })
  end
  handles.close(id)
end

--- Remove a mark, and open a handle in its place. If a cursor is in the question, it follows the
--- turn.
---@param height integer how many lines the question has
---@return integer? handle
function M.take(buf, mark, height)
  local row = api.nvim_buf_is_loaded(buf) and H.row(buf, mark)
  if not row then
    return nil
  end
  M.remove(buf, { mark })
  local id = handles.open(buf, row, H.window(buf, row, height))
  handles.watch(id)
  return id
end

--- Remove marks; without `marks`, all of them.
---@param marks? integer[]
---@return integer count the number of marks on a question
function M.remove(buf, marks)
  if not api.nvim_buf_is_loaded(buf) then
    return 0
  end
  local count = #H.marks(buf)
  if not marks then
    api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  end
  for _, mark in ipairs(marks or {}) do
    api.nvim_buf_del_extmark(buf, ns, mark)
  end
  return count - #H.marks(buf)
end

--- The marks whose lines still exist, and their rows, from the top.
---@return { id: integer, row: integer }[]
function H.marks(buf)
  local marks = {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
    if not mark[4].invalid then
      table.insert(marks, { id = mark[1], row = mark[2] })
    end
  end
  return marks
end

function H.row(buf, mark)
  local found = vim.iter(H.marks(buf)):find(function(each)
    return each.id == mark
  end)
  return found and found.row
end

--- A window with its cursor in these lines, preferably the current window; false if there is none.
function H.window(buf, row, height)
  local windows = vim.tbl_filter(function(win)
    local at = api.nvim_win_get_cursor(win)[1] - 1
    return row <= at and at < row + height
  end, vim.fn.win_findbuf(buf))
  local current = api.nvim_get_current_win()
  return vim.list_contains(windows, current) and current or windows[1] or false
end

--- A handle's row.
function H.place(id)
  local handle = id and handles.get(id)
  return handle and (handles.row(handle, "answer") or handles.row(handle, "anchor")) or nil
end

return M
