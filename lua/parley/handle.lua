--- Handles: places in buffers where the host works; their marks move with the text.
---
--- A command opens a handle at the cursor. The handle is lost when the buffer or the current answer
--- is removed.
local M = {}

local api = vim.api
local rows = require("parley.buffer_rows")
local ns = api.nvim_create_namespace("parley.handle")
local longest_character = 64 -- bytes, with its combining marks
local H = { handles = {}, last = 0 }

-- The messages that the host shows if the buffer is gone.
M.closed = "the buffer was closed, so its turn has ended"
M.reread = "the buffer was reloaded, so its turn has ended"
M.removed = "the answer was removed, so its turn has ended. :ParleyRespond asks again"

---@class parley.Handle
---@field id integer
---@field buf integer
---@field anchor integer extmark: a line of the current exchange
---@field answer? integer extmark: the first line of the current answer
---@field start? integer extmark: the start of the stream
---@field tip? integer extmark: the end of the stream, or of the last edit
---@field more? string the line below the tip, which says that the reply is unfinished
---@field markers? string[] the texts that start structural lines
---@field cover? integer extmark: covers this line
---@field tick? integer the changedtick after the last edit of this handle
---@field step? integer the number of the undo step that the handle wrote last
---@field win? integer the window of the command
---@field cursor? integer extmark: the line in which this handle left the cursor
---@field writing? boolean
---@field tip_place? parley.Tip the tip, as the last piece has left it
---@field cost? number the most milliseconds of the pieces since the last answer to the host
---@field failure? string why a piece could not be written
---@field led? integer the row of `cursor`, while `tip_place` is known
---@field unloaded? boolean whether its text was removed from the buffer
---@field gone? string why it is lost, even if its buffer can be changed again

---@class parley.Tip
---@field row integer
---@field col integer
---@field before string the text before it in its line
---@field below? integer the row of the covered line

--- Open a handle at a line of a buffer.
---@param win? integer|false the window to follow; nil: the current window, if it shows the buffer
---@return integer id
function M.open(buf, row, win)
  H.tell_lost(buf)
  H.last = H.last + 1
  local handle = { id = H.last, buf = buf, anchor = H.mark(buf, row, 0) }
  if win == nil and api.nvim_get_current_buf() == buf then
    win = api.nvim_get_current_win()
  end
  if win then
    handle.win = win
    handle.cursor = H.mark(buf, api.nvim_win_get_cursor(win)[1] - 1, 0)
  end
  H.handles[handle.id] = handle
  return handle.id
end

--- Open a handle at `row` for the host's own work, if the text has not changed since `tick`. Its
--- text joins the undo step of the last written text.
---@return integer? id
function M.open_after(buf, tick, row)
  if api.nvim_buf_is_loaded(buf) then
    local is_same = api.nvim_buf_get_changedtick(buf) == tick
    local id = M.open(buf, is_same and row or 0)
    H.handles[id].tick = is_same and tick or nil
    return id
  end
end

--- The row in which the user types in a handle's buffer; nil if the user does not type.
---@return integer?
function M.typing(id)
  local handle = H.handles[id]
  local types = handle
    and handle.buf == api.nvim_get_current_buf()
    and api.nvim_get_mode().mode:match("^[iR]")
  return types and api.nvim_win_get_cursor(0)[1] - 1 or nil
end

--- Tell the host at once, from now on, when the buffer or the current answer is removed.
function M.watch(id)
  local handle = H.handles[id]
  if not handle or M.lost(handle) then
    return false
  end
  local function ended()
    return H.handles[id] ~= handle
  end
  local function gone()
    if not ended() then
      H.tell(handle)
      if api.nvim_buf_is_loaded(handle.buf) then
        H.recover(handle)
      end
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

--- Why a handle is no longer usable; nil if it is usable.
---@return string?
function M.lost(handle)
  local buf = handle.buf
  if not api.nvim_buf_is_loaded(buf) then
    return M.closed
  elseif handle.unloaded then
    return M.reread
  elseif handle.gone then
    return handle.gone
  elseif not api.nvim_get_option_value("modifiable", { buf = buf }) then
    return "this buffer cannot be changed: :set modifiable, then try again"
  elseif M.place(handle) then
    return nil -- its text is as it was written
  elseif handle.answer and not M.row(handle, "answer") or H.is_undone(handle) then
    return M.removed
  end
end

--- Record that a handle is lost for good.
function M.lose(id, why)
  local handle = H.handles[id]
  if handle then
    handle.gone = why
  end
end

--- Whether the user has undone the handle's last text. An earlier answer would remain, and the next
--- piece would be written somewhere into it.
function H.is_undone(handle)
  if not handle.step or api.nvim_buf_get_changedtick(handle.buf) == handle.tick then
    return false
  end
  local tree = vim.fn.undotree(handle.buf)
  return tree.seq_cur < handle.step or H.is_off_branch(tree.entries, handle.step, false)
end

--- Whether an undo step is on a branch that the user has left, by an undo followed by a change.
function H.is_off_branch(entries, step, off)
  return vim.iter(entries):any(function(entry)
    return off and entry.seq == step or entry.alt and H.is_off_branch(entry.alt, step, true)
  end)
end

--- The handle with an id; or nil, and the reply for the host.
---@return parley.Handle?, table?
function M.get(id)
  local handle = H.handles[id]
  local why = not handle and M.closed or M.lost(handle)
  if why then
    return nil, { gone = why }
  end
  return handle
end

--- Move a handle to another line.
function M.move(id, row)
  local handle = H.handles[id]
  if handle then
    handle.anchor = H.mark(handle.buf, row, 0, { id = handle.anchor, strict = false })
  end
end

--- Remember the first line of the current answer, in the text of `tick`.
function M.pin(id, tick, row)
  local handle = H.handles[id]
  if not handle or handle.answer or not row or api.nvim_buf_get_changedtick(handle.buf) ~= tick then
    return
  end
  if rows.has(handle.buf, row) then
    local line = rows.line(handle.buf, row)
    handle.answer =
      H.mark(handle.buf, row, 0, { end_row = row, end_col = #line, invalidate = true })
  end
end

--- The row of a handle's mark; nil if it is not set, or its text is gone.
---@param name 'anchor'|'answer'|'start'|'tip'|'cover'|'cursor'
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

--- The tip, if the text is still as the last piece has left it.
---@return parley.Tip?
function M.place(handle)
  local tip = handle.tip_place
  return tip and api.nvim_buf_get_changedtick(handle.buf) == handle.tick and tip or nil
end

--- Remember the tip behind a piece. Neovim has moved its mark.
---@param tip parley.Tip
---@param is_lower boolean whether it is in another row than before
function M.keep(handle, tip, is_lower)
  handle.tip_place = tip
  handle.led = not is_lower and handle.led or nil
end

--- Cover all rows of the line which says that the reply is unfinished. When the user types there,
--- the line appears.
function M.cover(handle, row)
  local line = api.nvim_buf_get_lines(handle.buf, row, row + 1, true)[1]
  local opts = { id = handle.cover, end_row = row, end_col = #line, invalidate = true }
  if line == handle.more then
    opts.virt_text = { { (" "):rep(api.nvim_strwidth(line) + 1) } }
    opts.virt_text_pos, opts.virt_text_repeat_linebreak = "overlay", true
    opts.priority = 200 -- above other plugins' texts, and below the status
  end
  handle.cover = H.mark(handle.buf, row, 0, opts)
end

--- The row of the covered line, and whether it is still covered; nil if the user has deleted it.
---@return integer? row, boolean? covered
function M.says_more(handle)
  local row = handle.more and M.row(handle, "cover")
  local line = row and api.nvim_buf_get_lines(handle.buf, row, row + 1, false)[1] or ""
  if row and vim.startswith(line, (handle.more:gsub("\r$", ""))) then
    return row, line == handle.more
  end
end

--- Renew or remove the cover, because the user has changed the line.
function H.recover(handle)
  local row = handle.more and M.row(handle, "cover")
  if row then
    M.cover(handle, row)
  end
end

--- Forget the covered line, because the reply is complete.
function M.end_reply(handle)
  handle.more = nil
  if handle.cover then
    api.nvim_buf_del_extmark(handle.buf, ns, handle.cover)
    handle.cover = nil
  end
end

--- Remember where the handle left the cursor, to notice later if the user has moved it.
function M.set_cursor(handle, row)
  handle.led = nil
  handle.cursor = H.mark(handle.buf, row, 0, { id = handle.cursor })
end

--- Whether the cursor is still where the handle was opened, or where the handle last put it.
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

--- The windows with their cursor on a row, except a window in which the user types, selects, or has
--- started an operator: Parley must not scroll there or move the cursor.
---@param row? integer
---@param accepts? fun(win: integer, at: integer[]): boolean which of them
---@param below? integer another row that counts
---@return integer[]
function M.at(buf, row, accepts, below)
  local current, found = api.nvim_get_current_win(), {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local at = api.nvim_win_get_cursor(win)
    local is_there = row and (at[1] - 1 == row or at[1] - 1 == below)
    if is_there and (win ~= current or api.nvim_get_mode().mode == "n") then
      if not accepts or accepts(win, at) then
        found[#found + 1] = win
      end
    end
  end
  return found
end

--- The windows that follow the tip: those with the cursor at the end of the tip's line (a paragraph
--- is one line). A window without 'wrap' follows from anywhere on this line, because it may not
--- show the end. A cursor on the covered line below also counts: the user went to the end of the
--- chat.
---@param tip? parley.Tip if it is known
function M.followers(handle, tip)
  local buf = handle.buf
  local below, covered
  local row, col = tip and tip.row, tip and tip.col
  if tip then
    below = tip.below
  else
    row, col = M.row(handle, "tip")
    below, covered = M.says_more(handle)
    below = covered and below or nil
  end
  return M.at(buf, row, function(win, at)
    if at[1] - 1 == below or at[2] >= col then
      return true
    end
    local is_near = col - at[2] < longest_character
    local left = is_near and api.nvim_buf_get_text(buf, row, at[2], row, col, {})[1] or ""
    return is_near and (#left == 1 or vim.fn.strchars(left, true) == 1)
      or not api.nvim_get_option_value("wrap", { win = win })
  end, below)
end

--- Put the cursors in some windows at the tip, or at the end of the text if its line is removed.
---@param tip? parley.Tip if it is known
function M.follow(handle, windows, tip)
  if #windows == 0 then
    return
  end
  local row, col = tip and tip.row, tip and tip.col
  if not tip then
    row, col = M.row(handle, "tip")
    row = row and math.min(row, api.nvim_buf_line_count(handle.buf) - 1)
  end
  for _, win in ipairs(row and windows or {}) do
    local wraps = api.nvim_get_option_value("wrap", { win = win })
    api.nvim_win_set_cursor(win, { row + 1, wraps and col or 0 })
    if win == handle.win and handle.led ~= row then
      M.set_cursor(handle, row)
      handle.led = tip and row or nil
    end
  end
end

--- Put a handle's cursor into a row, at its start or end, if the user has not moved it.
---@return boolean moved
function M.lead(handle, row, to_end)
  if not M.unmoved(handle) or not rows.has(handle.buf, row) then
    return false
  end
  local line = rows.line(handle.buf, row)
  api.nvim_win_set_cursor(handle.win, { row + 1, to_end and #line or 0 })
  require("parley.folds").uncover(handle.win, row)
  M.set_cursor(handle, row)
  return true
end

--- End the turn.
---@param goes_on? { row: integer, to_end: boolean, reveal?: integer, sightings?: integer[], stays?: boolean }
---the row where the user continues, a row whose virtual lines must be visible, the numbers of the
---calls to read, and whether a cursor between these rows stays
---@return integer? tick the final changedtick
function M.finish(id, goes_on)
  local handle = M.get(id)
  local row = handle and goes_on and H.goes_to(handle, goes_on)
  if row and goes_on.reveal then
    require("parley.view").reveal(handle.win, row, goes_on.reveal)
  end
  if handle and goes_on and goes_on.reveal then
    require("parley.sightings").show(handle.buf, row and handle.win or nil, goes_on.sightings or {})
    require("parley.sightings").look_soon(handle.buf)
  elseif row then
    H.fill(handle.win)
  end
  if handle then
    require("parley.keys").told(handle.buf)
    require("parley.chat").keep(handle.buf)
    return api.nvim_buf_get_changedtick(handle.buf)
  end
end

--- The row where the user continues; nil if the cursor may stay anywhere.
---@return integer? row
function H.goes_to(handle, goes_on)
  local row = M.unmoved(handle) and M.row(handle, "cursor")
  if row and goes_on.stays and goes_on.row <= row and row <= goes_on.reveal then
    return row
  end
  return M.lead(handle, goes_on.row, goes_on.to_end) and goes_on.row or nil
end

--- Scroll back a window that is empty below the last line, because folding has made room.
function H.fill(win)
  api.nvim_win_call(win, function()
    local info, top = vim.fn.getwininfo(win)[1], vim.fn.line("w0")
    local function fits(line)
      return api.nvim_win_text_height(win, { start_row = line - 1 }).all <= info.height
    end
    local above = top - 1
    while above > 0 and fits(above) do
      local closed = vim.fn.foldclosed(above)
      top = closed ~= -1 and closed or above
      above = top - 1
    end
    if top < vim.fn.line("w0") then
      vim.fn.winrestview({ topline = top, skipcol = 0 })
    end
  end)
end

---@param id? integer
function M.close(id)
  local handle = id and H.handles[id]
  if not handle then
    return
  end
  H.handles[id] = nil
  if api.nvim_buf_is_valid(handle.buf) then
    for _, name in ipairs({ "anchor", "answer", "start", "tip", "cover", "cursor" }) do
      if handle[name] then
        api.nvim_buf_del_extmark(handle.buf, ns, handle[name])
      end
    end
  end
end

--- Whether a handle works in a buffer; 0 means the current buffer, nil any buffer.
---@param but? integer a handle to ignore
function M.busy(buf, but)
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  return vim.iter(pairs(H.handles)):any(function(_, handle)
    return handle.id ~= but and (buf == nil or handle.buf == buf)
  end)
end

--- Record that a buffer's text was removed. When the host is told, it is clear whether the buffer
--- was reloaded.
function M.unload(buf)
  H.each_in(buf, function(handle)
    handle.unloaded = true
  end)
end

function M.close_buffer(buf)
  H.each_in(buf, function(handle)
    H.tell(handle)
    M.close(handle.id)
  end)
end

function M.close_all()
  for id in pairs(H.handles) do
    M.close(id)
  end
end

--- Tell the host if a handle is lost.
function H.tell(handle)
  local why = M.lost(handle)
  if why then
    require("parley.host").mention("gone", { handle = handle.id, why = why })
  end
end

--- Tell the host about lost handles before its next request.
function H.tell_lost(buf)
  H.each_in(buf, H.tell)
end

function H.each_in(buf, act)
  for _, handle in pairs(H.handles) do
    if handle.buf == buf then
      act(handle)
    end
  end
end

function H.mark(buf, row, col, opts)
  opts = vim.tbl_extend("force", opts or {}, { strict = false })
  return api.nvim_buf_set_extmark(buf, ns, rows.within(buf, row), col, opts)
end

return M
