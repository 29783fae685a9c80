--- A reply on its way into a buffer: pieces at the tip, as fast as the screen can take them.
---
--- Below the tip a line says that there is more to come: whatever ends Neovim or the host, the text says so.
--- It is covered as long as the reply comes, and the status is shown in its place.
local M = {}

local api = vim.api
local edit = require("parley.edit")
local guard = require("parley.guard")
local handles = require("parley.handle")
local H = {}

--- Apply an edit and write at the row it names from now on.
---@param more? string the line below that row, which says that there is more to come
function M.open(id, tick, edits, answer, row, markers, more)
  local reply = edit.apply(id, tick, edits, answer, markers)
  if not reply.applied then
    return reply
  end
  local handle = handles.get(id) --[[@as parley.Handle]]
  local followers = handles.followers(handle)
  -- On the empty line that was made, or before the CR of one in a file of CRLF lines.
  handles.set_tip(handle, row, 0)
  handle.more = more
  if more then
    handles.cover(handle, row + 1)
  end
  handles.follow(handle, followers)
  handles.lead(handle, row, true)
  require("parley.status").moved(handle.buf)
  return reply
end

--- Write at the tip. Tells what that cost the editor, in milliseconds, so that the host can pace itself, and
--- whether the text is parsed for its highlights.
---@param text string
---@param fresh boolean whether the host believes to be at the start of a line
---@param markers string[] what structure starts with
function M.append(id, text, fresh, markers)
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
  if row >= api.nvim_buf_line_count(buf) then -- what the user took away was below
    edit.write(handle, function()
      api.nvim_buf_set_lines(buf, -1, -1, true, { "" })
    end)
    row, col = api.nvim_buf_line_count(buf) - 1, 0
  end
  local before = api.nvim_buf_get_text(buf, row, 0, row, col, {})[1]
  local lines = vim.split(text, "\n", { plain = true })
  local escape = M.fit(lines, before, fresh, markers)
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
  guard.note(buf, row, col, last, markers)
  handles.follow(handle, followers)
  require("parley.status").moved(buf)
  M.show(buf)
  local cost, parsed = (vim.uv.hrtime() - started) / 1e6, vim.treesitter.highlighter.active[buf] ~= nil
  return { cost = cost, lines = api.nvim_buf_line_count(buf), parsed = parsed }
end

--- There is more to come, and the text says so, even if the user has deleted the line that did.
function H.say_more(handle, row)
  if handle.more and not handles.says_more(handle) then
    api.nvim_buf_set_lines(handle.buf, row + 1, row + 1, true, { handle.more })
    handles.cover(handle, row + 1)
  end
end

--- The host has escaped what looks like structure at the start of its lines. Where the user has moved the
--- tip to another column meanwhile, it is for us to see to that no line says what was not meant.
---@return boolean escape whether the line that is gone on with needs a backslash
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

--- Draw now, so that the cost is known here and not found out by the next key.
function M.show(buf)
  local mode = api.nvim_get_mode().mode
  if #vim.fn.win_findbuf(buf) > 0 and (mode == "n" or mode:match("^[iRvV\22]")) then
    pcall(vim.cmd.redraw)
  end
end

return M
