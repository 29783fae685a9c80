--- Streams a reply into a buffer: pieces at the tip, as fast as the screen can draw them.
---
--- A line below the tip says that the reply is unfinished. So the text says so even if Neovim or
--- the host dies. While the reply streams, the line is covered, and the status is shown in its
--- place.
local M = {}

local api = vim.api
local edit = require("parley.edit")
local guard = require("parley.guard")
local handles = require("parley.handle")
local rows = require("parley.buffer_rows")
local H = {}

--- Apply an edit. From then on, write at a row of the edited text.
---@param markers string[] the texts that start structural lines
---@param more? string the line below this row, which says that the reply is unfinished
function M.open(id, tick, edits, answer, row, markers, more)
  local reply = edit.apply(id, tick, edits, answer, markers)
  if not reply.applied then
    return reply
  end
  local handle = handles.get(id) --[[@as parley.Handle]]
  local followers = handles.followers(handle)
  -- At the end of its line; if the file has CRLF line ends, before the CR.
  local line_end = (more or ""):match("\r?$")
  handles.set_tip(handle, row, #rows.line(handle.buf, row) - #line_end)
  handle.more, handle.markers = more, markers
  if more then
    handles.cover(handle, row + 1)
  end
  handles.follow(handle, followers)
  handles.lead(handle, row, true)
  handles.keep(handle, H.tip(handle), true)
  require("parley.status").moved(handle.buf)
  require("parley.highlight").slowest_ms() -- earlier drawings say nothing about this reply
  return reply
end

--- Write at the tip. Returns how many milliseconds that and a drawing took at most since the last
--- answer, because the host adapts its pace. Does not draw, because Neovim does so anyway, after its
--- autocommands. An empty text is only a question about the pieces before it.
---@param text string
---@param fresh boolean whether the host expects to be at the start of a line
---@return { gone: string }|number reply the milliseconds
function M.append(id, text, fresh)
  local handle, gone = handles.get(id)
  if not handle then
    return gone
  elseif handle.failure then
    error(handle.failure, 0)
  end
  local cost = text == "" and 0 or H.write(handle, text, fresh)
  if not cost then
    return { gone = handles.removed }
  end
  cost, handle.cost = math.max(cost, handle.cost or 0) + require("parley.highlight").slowest_ms(), 0
  return cost
end

--- The same without an answer. After a piece that could not be written, nothing more is written,
--- because the text would lack the piece; the next `append` reports it.
function M.write(id, text, fresh)
  local handle, gone = handles.get(id)
  if not handle then
    handles.lose(id, gone.gone)
  elseif not handle.failure then
    local ok, cost = pcall(H.write, handle, text, fresh)
    handle.failure = not ok and cost or nil
    handle.cost = math.max(ok and cost or 0, handle.cost or 0)
    if not cost then
      handles.lose(id, handles.removed)
    end
  end
end

--- Write at the tip. Returns how many milliseconds that took; nil if the handle has no tip.
---
--- A reply has a thousand pieces, so a piece reads nothing that is known from the last one.
function H.write(handle, text, fresh)
  local started = vim.uv.hrtime()
  local buf = handle.buf
  guard.check(buf)
  local known = handles.place(handle)
  local tip = known or H.tip(handle)
  if not tip then
    return nil
  end
  local lines = H.lines(text)
  local escape = M.fit(lines, tip.before, fresh, handle.markers or {})
  local followers = handles.followers(handle, tip)
  local row, col, before = tip.row, tip.col, tip.before
  edit.write(handle, function()
    if escape then
      api.nvim_buf_set_text(buf, row, 0, row, 0, { "\\" })
      col, before = col + 1, "\\" .. before
    end
    api.nvim_buf_set_text(buf, row, col, row, col, lines)
  end)
  local more, last = #lines - 1, lines[#lines]
  before = more == 0 and before .. last or last
  guard.note(buf, row, col, row + more, handle.markers, more == 0 and before or nil)
  tip = { row = row + more, col = #before, before = before, below = tip.below and tip.below + more }
  handles.keep(handle, tip, more > 0)
  handles.follow(handle, followers, tip)
  require("parley.status").moved(buf, known ~= nil and more == 0)
  require("parley.highlight").written(buf, row)
  return (vim.uv.hrtime() - started) / 1e6
end

--- The place of the next piece, read from the buffer; nil if the handle has none. Adds missing lines
--- below it.
---@return parley.Tip?
function H.tip(handle)
  local buf = handle.buf
  handle.led = nil
  local row, col = handles.row(handle, "tip")
  if not row then
    return nil
  end
  if row >= api.nvim_buf_line_count(buf) then -- the user has removed the rows below
    edit.write(handle, function()
      api.nvim_buf_set_lines(buf, -1, -1, true, { "" })
    end)
    row, col = api.nvim_buf_line_count(buf) - 1, 0
    handles.set_tip(handle, row, col)
  end
  if handle.more and not handles.says_more(handle) then
    edit.write(handle, function()
      H.say_more(handle, row)
    end)
  end
  local below, covered = handles.says_more(handle)
  return {
    row = row,
    col = col,
    before = api.nvim_buf_get_text(buf, row, 0, row, col, {})[1],
    below = covered and below or nil,
  }
end

--- The lines of a text; most pieces have one.
function H.lines(text)
  local lines, start = {}, 1
  local stop = text:find("\n", start, true)
  while stop do
    lines[#lines + 1] = text:sub(start, stop - 1)
    start = stop + 1
    stop = text:find("\n", start, true)
  end
  lines[#lines + 1] = text:sub(start)
  return lines
end

--- Restore the line which says that the reply is unfinished, if the user has deleted it.
function H.say_more(handle, row)
  api.nvim_buf_set_lines(handle.buf, row + 1, row + 1, true, { handle.more })
  handles.cover(handle, row + 1)
end

--- Adapt lines to the tip's column. The host has escaped text that looks like structure at the
--- start of its lines. If the user has moved the tip to another column, the line must not become
--- structure by accident.
---@return boolean escape whether the continued line needs a backslash
function M.fit(lines, before, fresh, markers)
  if fresh then
    if before ~= "" and H.is_structure(lines[1], markers) then
      table.insert(lines, 1, "")
      table.insert(lines, 1, "")
    end
    return false
  end
  return H.is_structure(before .. lines[1], markers) and not H.is_structure(before, markers)
end

--- Whether a line starts with a marker, after backslashes.
function H.is_structure(line, markers)
  local at = line:find("[^\\]")
  local first = at and line:byte(at)
  for _, marker in ipairs(first and markers or {}) do
    if marker:byte() == first and line:sub(at, at + #marker - 1) == marker then
      return true
    end
  end
  return false
end

return M
