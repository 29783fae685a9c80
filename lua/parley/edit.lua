--- The host's only way to read and change a buffer.
---
--- This module applies a request at once or, if the text has changed since, not at all; then it
--- reports the changes. All text that a handle writes is one undo step.
local M = {}

local api = vim.api
local mirror = require("parley.mirror")
local guard = require("parley.guard")
local handles = require("parley.handle")
local preserve_ms = 500
local disk_share = 20 -- at most a twentieth of the time is spent waiting for the disk
local H = { steps = {}, preserves = {}, written = {}, pause_ms = preserve_ms }
local ns = api.nvim_create_namespace("parley.undo")

--- The changes since the text of `tick`, and the row of the current exchange.
function M.read(id, tick)
  local handle, gone = handles.get(id)
  if not handle then
    return gone
  end
  local change = mirror.take(handle.buf, tick)
  return { change = change, anchor = H.anchor(handle), pinned = handle.answer ~= nil }
end

--- The changes since the text of `tick`, for a buffer without a handle; the whole text while the
--- buffer is being reloaded and is not followed.
function M.look(buf, tick)
  if not api.nvim_buf_is_loaded(buf) then
    return { gone = handles.closed }
  end
  local change = mirror.take(buf, tick)
  if not change then
    local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
    change = { tick = api.nvim_buf_get_changedtick(buf), count = #lines, lines = lines }
  end
  return { change = change }
end

--- Apply edits to the text of `tick`: all or none.
---@param edits { start: integer, stop: integer, lines: string[] }[] in their order, each for the text
---after the edits before it
---@param answer? integer the row of the current answer, after the edits
---@param markers? string[] the texts that structure starts with
function M.apply(id, tick, edits, answer, markers)
  local handle, gone = handles.get(id)
  if not handle then
    return gone
  end
  guard.check(handle.buf)
  if api.nvim_buf_get_changedtick(handle.buf) ~= tick then
    return M.read(id, tick)
  end
  local followers = handles.followers(handle)
  local ends_reply = handle.more
    and #edits > 0
    and edits[1].stop > (handles.row(handle, "tip") or 0)
  local first = math.huge
  M.write(handle, function()
    for _, each in ipairs(edits) do
      first = math.min(first, each.start)
      H.replace(handle.buf, each.start, each.stop, each.lines)
      guard.note(handle.buf, each.start, 0, each.start + #each.lines - 1, markers)
    end
  end)
  if ends_reply then
    handles.end_reply(handle)
  end
  require("parley.folds").repair(handle.buf)
  local moved = H.tip_below(handle, edits, ends_reply) or ends_reply
  if moved then
    handles.follow(handle, followers)
  end
  if ends_reply or moved and #followers > 0 then
    require("parley.status").moved(handle.buf)
  end
  if #edits > 0 then
    require("parley.highlight").written(handle.buf, first)
  end
  if first < H.anchor(handle) then
    H.remember(handle)
  end
  handles.pin(id, handle.tick, answer)
  mirror.agree(handle.buf)
  return { applied = true, tick = handle.tick or tick, anchor = H.anchor(handle) }
end

--- The text has changed. If an undo step removed an answer and text far above the answer, the
--- cursor is up there: move it to the answer's place.
function M.undone(buf)
  local step = H.steps[buf]
  local row = step and api.nvim_buf_get_extmark_by_id(buf, ns, step.mark, {})[1]
  local cursor = api.nvim_win_get_cursor(0)[1] - 1
  if not row or cursor >= row or api.nvim_get_current_buf() ~= buf then
    return
  end
  local last = api.nvim_eval("get(undotree().entries, -1, {})")
  if last.curhead and last.seq == step.seq then
    api.nvim_win_set_cursor(0, { math.min(row + 1, api.nvim_buf_line_count(buf)), 0 })
  end
end

function M.forget(buf)
  H.steps[buf], H.written[buf] = nil, nil
end

--- When Parley last wrote into a buffer, in seconds since 1970.
---@return number
function M.written(buf)
  return H.written[buf] or 0
end

--- Write into a handle's buffer. The change joins the undo step of the handle's earlier text, but
--- no other changes.
function M.write(handle, change)
  local buf = handle.buf
  handle.writing, handle.tip_place = true, nil
  local typing = H.typed(buf) ~= nil
  if typing or not handle.tick then
    H.end_undo_block(buf)
  end
  local joins = handle.tick and api.nvim_buf_get_changedtick(buf) == handle.tick
  if joins then
    H.inside(buf, H.undojoin)
  end
  -- The first change in a read-only buffer would show a warning and wait a second.
  local readonly = api.nvim_get_option_value("readonly", { buf = buf })
  if readonly then
    vim.bo[buf].readonly = false
  end
  local ok, why = pcall(change)
  if readonly then
    vim.bo[buf].readonly = true
  end
  if typing then
    H.end_undo_block(buf)
  end
  handle.tick = api.nvim_buf_get_changedtick(buf)
  if not joins or not handle.step then
    handle.step = H.step(buf)
  end
  handle.writing = false
  local seconds, microseconds = vim.uv.gettimeofday()
  H.written[buf] = seconds + microseconds / 1e6
  H.preserve_soon(buf)
  if not ok then
    error(why, 0)
  end
end

function H.undojoin()
  pcall(api.nvim_command, "silent! undojoin")
end

--- Save the buffer's text in the swap file, where |:recover| finds it. Neovim itself does that only
--- when the user types. Saving waits for the disk, so save less often to a slow disk.
function H.preserve_soon(buf)
  if H.preserves[buf] or not api.nvim_get_option_value("swapfile", { buf = buf }) then
    return
  end
  H.preserves[buf] = true
  vim.defer_fn(function()
    H.preserves[buf] = nil
    if api.nvim_buf_is_loaded(buf) and vim.fn.swapname(buf) ~= "" then
      local started = vim.uv.hrtime()
      H.inside(buf, function()
        pcall(require("parley.messages").silently, "preserve", "!")
      end)
      H.pause_ms = math.max(preserve_ms, disk_share * (vim.uv.hrtime() - started) / 1e6)
    end
  end, math.floor(H.pause_ms))
end

--- The number of the undo step that contains the last change.
function H.step(buf)
  return H.inside(buf, function()
    return api.nvim_eval("undotree().seq_cur")
  end)
end

--- Remember the undo step that a handle has written, and the place of its answer.
function H.remember(handle)
  local step = H.steps[handle.buf] or {}
  H.steps[handle.buf] = step
  step.seq = H.step(handle.buf)
  step.mark = api.nvim_buf_set_extmark(handle.buf, ns, H.anchor(handle), 0, { id = step.mark })
end

--- Move the tip down to the end of the lowest edit. Do not move it up, because a stream may
--- continue there, unless the edits end its reply.
---@return boolean moved
function H.tip_below(handle, edits, ends_reply)
  local row, lowest = -1, nil
  for _, each in ipairs(edits) do
    if not lowest or each.start > row then
      row, lowest = each.start + #each.lines - 1, each
    else
      row = row + #each.lines - (each.stop - each.start)
    end
  end
  -- A stream cannot continue above the current exchange.
  local goes_down = row > (handles.row(handle, "tip") or H.anchor(handle) - 1)
  local moves = lowest and #lowest.lines > 0 and (goes_down or ends_reply)
  if moves then
    handles.set_tip(handle, math.max(row, 0), 0)
  end
  return moves == true
end

--- The row of the current exchange.
function H.anchor(handle)
  return handles.row(handle, "answer") or handles.row(handle, "anchor") or 0
end

--- Replace lines. Within a single line, replace only the difference, which keeps nearby marks and
--- cursors. If lines are inserted into a line, a cursor after the line's start moves along with its
--- text.
function H.replace(buf, first, last, lines)
  if first == last then
    H.insert(buf, first, lines)
    return
  end
  local old = last - first == 1 and api.nvim_buf_get_lines(buf, first, last, true)[1]
  local from = old and #lines > 0 and H.common(old, lines[1], math.huge) or 0
  if not old or #lines == 0 or (#lines > 1 and from == 0) then
    api.nvim_buf_set_lines(buf, first, last, true, lines)
    return
  end
  local final = lines[#lines]
  local most = math.min(#old, #lines == 1 and #final or math.huge) - from
  local tail = H.common(old:reverse(), final:reverse(), most)
  local changed = vim.list_slice(lines)
  changed[#lines] = final:sub(1, #final - tail)
  changed[1] = changed[1]:sub(from + 1)
  if #old - tail > from or #lines > 1 or changed[1] ~= "" then
    local typed = H.typed(buf)
    require("parley.folds").within(buf, first, function()
      api.nvim_buf_set_text(buf, first, from, first, #old - tail, changed)
    end)
    if #lines > 1 and typed and typed[1] == first + 1 and typed[2] == #old - tail then
      api.nvim_win_set_cursor(0, { first + #lines, #final - tail })
    end
  end
end

--- Insert lines above a row. `nvim_buf_set_lines` would not move a fold that starts there.
function H.insert(buf, row, lines)
  local text = vim.tbl_map(function(line)
    return (line:gsub("%z", "\n")) -- the form that Vim's functions use
  end, lines)
  if vim.fn.appendbufline(buf, row, text) ~= 0 then
    error(("cannot insert a line into buffer %d"):format(buf), 0)
  end
end

--- The length, in bytes, of the common beginning of two texts, up to a limit.
function H.common(one, other, most)
  local n = 0
  most = math.min(most, #one, #other)
  while n < most and one:byte(n + 1) == other:byte(n + 1) do
    n = n + 1
  end
  return n
end

--- The row in which the user types in a buffer; nil if the user does not type.
function H.typed(buf)
  local types = api.nvim_get_current_buf() == buf and api.nvim_get_mode().mode:match("^[iR]")
  return types and api.nvim_win_get_cursor(0) or nil
end

--- End the current undo step, so that text typed before and after has separate steps.
function H.end_undo_block(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

function H.inside(buf, act)
  if api.nvim_get_current_buf() == buf then
    return act()
  end
  return api.nvim_buf_call(buf, act)
end

return M
