--- Where the host works in a buffer, and the one way in which it changes it.
---
--- A handle is opened by a command, at the cursor; its marks move with the text. What the host asks for is
--- done at once or, when the text has changed meanwhile, not at all: then it is told the new text. All that
--- one handle writes is one step of undo.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.edit")
local H = { handles = {}, last = 0 }

---@class parley.Handle
---@field id integer
---@field buf integer
---@field anchor integer extmark: a line of the exchange in hand
---@field answer? integer extmark: the line the answer in hand starts with
---@field start? integer extmark: where the stream began
---@field tip? integer extmark: where the stream, or the last edit, ends
---@field tick? integer the changedtick after the last edit of this handle
---@field win? integer the window the command was given in
---@field cursor? integer extmark: the cursor's line, as this handle left it
---@field writing? boolean

--- Open a handle at a line of a buffer.
---@return integer id
function M.open(buf, row)
  H.last = H.last + 1
  local handle = { id = H.last, buf = buf, anchor = H.mark(buf, row, 0) }
  if api.nvim_get_current_buf() == buf then
    handle.win = api.nvim_get_current_win()
    handle.cursor = H.mark(buf, api.nvim_win_get_cursor(0)[1] - 1, 0)
  end
  H.handles[handle.id] = handle
  return handle.id
end

--- From now on the host hears at once when the buffer or the answer in hand is taken away.
function M.watch(id)
  local handle = H.handles[id]
  if not handle or not M.alive(handle) then
    return false
  end
  local function ended()
    return H.handles[id] ~= handle
  end
  local function gone()
    if not ended() and M.lost(handle) then
      require("parley.host").mention("gone", { handle = id, why = M.lost(handle) })
    end
  end
  return api.nvim_buf_attach(handle.buf, false, {
    on_lines = function()
      if ended() then
        return true
      elseif not handle.writing then
        vim.schedule(gone)
      end
    end,
    on_reload = vim.schedule_wrap(gone),
    on_detach = vim.schedule_wrap(gone),
  })
end

--- Why a handle can be worked with no more; nil if it can.
---@return string?
function M.lost(handle)
  if not api.nvim_buf_is_valid(handle.buf) or not api.nvim_buf_is_loaded(handle.buf) then
    return "the buffer was closed"
  elseif not vim.bo[handle.buf].modifiable then
    return "the buffer is 'nomodifiable'"
  elseif handle.answer and not M.row(handle, "answer") then
    return "the answer was removed"
  end
end

function M.alive(handle)
  return not M.lost(handle)
end

--- The handle of an id, or nil and what the host is to be told.
---@return parley.Handle?, table?
function M.get(id)
  local handle = H.handles[id]
  local why = not handle and "the chat was closed" or M.lost(handle)
  if why then
    return nil, { gone = why }
  end
  return handle
end

--- The text as it is; if the host has that of `tick`, and it is still the same, only that.
function M.read(id, tick)
  local handle, gone = M.get(id)
  if not handle then
    return gone
  end
  local now = api.nvim_buf_get_changedtick(handle.buf)
  local anchor = M.row(handle, "answer") or M.row(handle, "anchor") or 0
  local text = now ~= tick and H.text(handle.buf) or nil
  return { tick = now, anchor = anchor, text = text, pinned = handle.answer ~= nil }
end

--- The text of a buffer that nobody works in; like `read`.
function M.look(buf, tick)
  if not api.nvim_buf_is_loaded(buf) then
    return { gone = "the buffer was closed" }
  end
  local now = api.nvim_buf_get_changedtick(buf)
  return { tick = now, anchor = 0, text = now ~= tick and H.text(buf) or nil }
end

--- Take another line for the one the handle was opened at.
function M.move(id, row)
  local handle = H.handles[id]
  if handle then
    handle.anchor = H.mark(handle.buf, row, 0, { id = handle.anchor, strict = false })
  end
end

--- Apply edits to the text of `tick`, all or none.
---@param edits { [1]: integer, [2]: integer, [3]: string[] }[] start, end, lines; from the bottom up
---@param answer? integer the row of the answer in hand, after the edits
function M.apply(id, tick, edits, answer)
  local handle, gone = M.get(id)
  if not handle then
    return gone
  elseif api.nvim_buf_get_changedtick(handle.buf) ~= tick then
    return M.read(id)
  end
  M.write(handle, function()
    for _, each in ipairs(edits) do
      H.replace(handle.buf, each[1], each[2], each[3])
    end
  end)
  H.tip_below(handle, edits)
  M.pin(id, handle.tick, answer)
  local at = M.row(handle, "answer") or M.row(handle, "anchor") or 0
  return { applied = true, tick = handle.tick or tick, anchor = at }
end

--- Remember the line that the answer in hand starts with, in the text of `tick`.
function M.pin(id, tick, row)
  local handle = H.handles[id]
  if not handle or handle.answer or not row or api.nvim_buf_get_changedtick(handle.buf) ~= tick then
    return
  end
  local line = api.nvim_buf_get_lines(handle.buf, row, row + 1, false)[1]
  if line then
    handle.answer = H.mark(handle.buf, row, 0, { end_row = row, end_col = #line, invalidate = true })
  end
end

--- Write into the buffer of a handle: one step of undo with what this handle wrote just before, and with
--- nothing that anybody else did.
function M.write(handle, change)
  local buf = handle.buf
  handle.writing = true
  local typing = api.nvim_get_current_buf() == buf and api.nvim_get_mode().mode:match("^[iR]") ~= nil
  if typing or not handle.tick then
    H.end_undo_block(buf)
  end
  if handle.tick and api.nvim_buf_get_changedtick(buf) == handle.tick then
    H.inside(buf, function()
      pcall(vim.cmd, "silent! undojoin")
    end)
  end
  -- The first change of a read-only buffer would warn, and wait a second for the warning to be read.
  local readonly = vim.bo[buf].readonly
  vim.bo[buf].readonly = false
  local ok, why = pcall(change)
  vim.bo[buf].readonly = readonly
  if typing then
    H.end_undo_block(buf)
  end
  handle.tick = api.nvim_buf_get_changedtick(buf)
  handle.writing = false
  if not ok then
    error(why, 0)
  end
end

--- The row of one of a handle's marks; nil where it is not set, or its text is gone.
---@param name 'anchor'|'answer'|'start'|'tip'|'cursor'
---@return integer? row, integer? col
function M.row(handle, name)
  local id = handle[name]
  if not id then
    return nil
  end
  local at = api.nvim_buf_get_extmark_by_id(handle.buf, ns, id, { details = true })
  if not at[1] or at[3].invalid then
    return nil
  end
  return at[1], at[2]
end

function M.set_tip(handle, row, col)
  handle.tip = H.mark(handle.buf, row, col, { id = handle.tip })
end

--- Remember where the cursor was put, to know later whether the user moved it.
function M.set_cursor(handle, row)
  handle.cursor = H.mark(handle.buf, row, 0, { id = handle.cursor })
end

--- Whether the user has left the cursor where it was when the handle was opened, or where it put it since.
function M.unmoved(handle)
  local win = handle.win
  if not win or not api.nvim_win_is_valid(win) or api.nvim_win_get_buf(win) ~= handle.buf then
    return false
  end
  if win == api.nvim_get_current_win() and api.nvim_get_mode().mode ~= "n" then
    return false
  end
  return M.row(handle, "cursor") == api.nvim_win_get_cursor(win)[1] - 1
end

--- Put the cursor of a handle's window into a row, at its start or its end, if the user has not moved it.
---@return boolean moved
function M.lead(handle, row, to_end)
  if not M.unmoved(handle) or row >= api.nvim_buf_line_count(handle.buf) then
    return false
  end
  local line = api.nvim_buf_get_lines(handle.buf, row, row + 1, true)[1]
  api.nvim_win_set_cursor(handle.win, { row + 1, to_end and #line or 0 })
  M.set_cursor(handle, row)
  return true
end

--- The turn is over.
---@param goes_on? { row: integer, to_end: boolean, reveal?: integer } where the user goes on, and a row
---whose virtual lines are to be seen there
function M.finish(id, goes_on)
  local handle = M.get(id)
  if handle and goes_on and M.lead(handle, goes_on.row, goes_on.to_end) and goes_on.reveal then
    require("parley.view").reveal(handle.win, goes_on.row, goes_on.reveal)
  end
  if handle then
    require("parley.chat").keep(handle.buf)
  end
end

---@param id? integer
function M.close(id)
  local handle = id and H.handles[id]
  if not handle then
    return
  end
  H.handles[id] = nil
  if api.nvim_buf_is_valid(handle.buf) then
    for _, name in ipairs({ "anchor", "answer", "start", "tip", "cursor" }) do
      if handle[name] then
        api.nvim_buf_del_extmark(handle.buf, ns, handle[name])
      end
    end
  end
end

--- Whether anything works in a buffer; 0 is the current one, nil any.
function M.busy(buf)
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  return vim.iter(pairs(H.handles)):any(function(_, handle)
    return buf == nil or handle.buf == buf
  end)
end

function M.close_buffer(buf)
  for id, handle in pairs(H.handles) do
    if handle.buf == buf then
      require("parley.host").mention("gone", { handle = id, why = "the buffer was closed" })
      M.close(id)
    end
  end
end

function M.close_all()
  for id in pairs(H.handles) do
    M.close(id)
  end
end

--- The tip goes down to where the lowest of the edits ends, and never up: a stream may go on at it.
function H.tip_below(handle, edits)
  local row = #edits > 0 and edits[1][1] + #edits[1][3] - 1 or 0
  for i = 2, #edits do
    row = row + #edits[i][3] - (edits[i][2] - edits[i][1])
  end
  if #edits > 0 and row > (M.row(handle, "tip") or -1) then
    M.set_tip(handle, math.max(row, 0), 0)
  end
end

function H.mark(buf, row, col, opts)
  return api.nvim_buf_set_extmark(buf, ns, row, col, opts or {})
end

--- The text of a buffer, each line ended; what is no text is in it as it is.
function H.text(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  lines[#lines + 1] = ""
  return table.concat(lines, "\n")
end

--- Replace lines; within a single line only what differs, so that marks and cursors beside it stay.
function H.replace(buf, first, last, lines)
  if last - first ~= 1 or #lines ~= 1 then
    api.nvim_buf_set_lines(buf, first, last, true, lines)
    return
  end
  local old, new = api.nvim_buf_get_lines(buf, first, last, true)[1], lines[1]
  local from, most = 0, math.min(#old, #new)
  while from < most and old:byte(from + 1) == new:byte(from + 1) do
    from = from + 1
  end
  local tail = 0
  while tail < most - from and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  if from < #old or from < #new then
    api.nvim_buf_set_text(buf, first, from, first, #old - tail, { new:sub(from + 1, #new - tail) })
  end
end

--- What is typed before and after stays a step of undo of its own.
function H.end_undo_block(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

function H.inside(buf, act)
  if api.nvim_get_current_buf() == buf then
    act()
  else
    api.nvim_buf_call(buf, act)
  end
end

return M
