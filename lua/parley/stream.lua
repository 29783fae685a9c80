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
  require("parley.status").moved(handle.buf)
  require("parley.highlight").slowest_ms() -- earlier drawings say nothing about this reply
  return reply
end

--- Write at the tip. Returns how many milliseconds that and the last drawing took, because the host
--- adapts its pace. Does not draw, because Neovim does so anyway, after its autocommands.
---@param text string
---@param fresh boolean whether the host expects to be at the start of a line
---@return { gone: string }|number[] reply the milliseconds and the number of lines in the buffer
function M.append(id, text, fresh)
  local handle, gone = handles.get(id)
  if not handle then
    return gone
  end
  local started = vim.uv.hrtime()
  local buf = handle.buf
  guard.check(buf)
  local row, col = handles.row(handle, "tip")
  if not row then
    return { gone = handles.removed }
  end
  if row >= api.nvim_buf_line_count(buf) then -- the user has removed the rows below
    edit.write(handle, function()
      api.nvim_buf_set_lines(buf, -1, -1, true, { "" })
    end)
    row, col = api.nvim_buf_line_count(buf) - 1, 0
  end
  local before = api.nvim_buf_get_text(buf, row, 0, row, col, {})[1]
  local lines = vim.split(text, "\n", { plain = true })
  local escape = M.fit(lines, before, fresh, handle.markers or {})
  local followers = handles.followers(handle)
  edit.write(handle, function()
    H.say_more(handle, row)
    if escape then
      api.nvim_buf_set_text(buf, row, 0, row, 0, { "\\" })
      col = col + 1
    end
    api.nvim_buf_set_text(buf, row, col, row, col, lines)
  end)
  local last = row + #lines - 1
  local end_col = (#lines == 1 and col or 0) + #lines[#lines]
  handles.set_tip(handle, last, end_col)
  guard.note(buf, row, col, last, handle.markers)
  handles.follow(handle, followers)
  require("parley.status").moved(buf)
  local highlight = require("parley.highlight")
  highlight.streamed(buf, row)
  local cost = (vim.uv.hrtime() - started) / 1e6 + highlight.slowest_ms()
  return { cost, api.nvim_buf_line_count(buf) }
end

--- Restore the line which says that the reply is unfinished, if the user has deleted it.
function H.say_more(handle, row)
  if handle.more and not handles.says_more(handle) then
    api.nvim_buf_set_lines(handle.buf, row + 1, row + 1, true, { handle.more })
    handles.cover(handle, row + 1)
  end
end

--- Adapt lines to the tip's column. The host has escaped text that looks like structure at the
--- start of its lines. If the user has moved the tip to another column, the line must not become
--- structure by accident.
---@return boolean escape whether the continued line needs a backslash
function M.fit(lines, before, fresh, markers)
  local function starts(line)
    local bare = line:gsub("^\\+", "")
    return vim.iter(markers):any(function(marker)
      return vim.startswith(bare, marker)
    end)
  end
  if fresh then
    if before ~= "" and starts(lines[1]) then
      table.insert(lines, 1, "")
      table.insert(lines, 1, "")
    end
    return false
  end
  return starts(before .. lines[1]) and not starts(before)
end

return M
