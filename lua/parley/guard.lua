--- Keeps a model's text from becoming structure when the user's editing moves it to the start of a
--- line: <Esc> removes an indent, 'textwidth' breaks a line, a formatter runs.
---
--- A mark tracks each text that looks like a marker but is not at the start of a line. If this text
--- gets there, Parley inserts a backslash before it. If the user removes the backslash after the
--- turn, the text becomes a marker.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.guard")
local starts = "[\226\240>]" -- the first bytes of all markers
local H = { guarded = {}, markers = {} }

--- Guard newly written text in some rows, from a column in the first row.
---@param markers? string[] the texts that start structural lines
---@param line? string the written row up to the end of the text, if there is only one row
function M.note(buf, row, col, last, markers, line)
  if line and not line:find(starts, 2) then
    return
  end
  for _, marker in ipairs(markers or {}) do
    H.markers[marker] = true
  end
  local rows = require("parley.buffer_rows")
  row, last = rows.within(buf, row), rows.within(buf, last)
  for number, text in ipairs(api.nvim_buf_get_lines(buf, row, math.max(last, row - 1) + 1, false)) do
    H.note_line(buf, row + number - 1, text, number == 1 and col or 0)
  end
end

--- Escape text that has moved to the start of a line. Call this before the host reads the text.
function M.check(buf)
  if not H.guarded[buf] or not api.nvim_buf_is_loaded(buf) then
    return
  end
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
    local id, row, col, details = unpack(mark)
    local bare = not details.invalid and col == 0 -- deleted text may be restored
    if bare and H.is_marker(api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or "") then
      if not require("parley.handle").busy(buf) then
        api.nvim_buf_del_extmark(buf, ns, id)
      end
      H.escape(buf, row)
    end
  end
end

function H.note_line(buf, row, line, from)
  if not line:find(starts, 2) then
    return
  end
  for marker in pairs(H.markers) do
    local at = line:find(marker, 2, true)
    while at do
      local stop = at + #marker - 1
      if stop > from then
        H.watch(buf)
        local opts = { end_row = row, end_col = stop, invalidate = true }
        api.nvim_buf_set_extmark(buf, ns, row, at - 1, opts)
      end
      at = line:find(marker, stop, true)
    end
  end
end

function H.is_marker(line)
  return vim.iter(pairs(H.markers)):any(function(marker)
    return vim.startswith(line, marker)
  end)
end

--- Escape a row's text, in one undo step with the change that moved it.
function H.escape(buf, row)
  local readonly = vim.bo[buf].readonly
  vim.bo[buf].readonly = false
  api.nvim_buf_call(buf, function()
    pcall(vim.cmd, "silent! undojoin")
    pcall(api.nvim_buf_set_text, buf, row, 0, row, 0, { "\\" })
  end)
  vim.bo[buf].readonly = readonly
end

--- Check after each change, as soon as the text may be changed again, and before the file is
--- written.
function H.watch(buf)
  if H.guarded[buf] then
    return
  end
  H.guarded[buf] = true
  local function forget()
    H.guarded[buf] = nil
  end
  api.nvim_buf_attach(buf, false, {
    on_lines = function()
      vim.schedule(function()
        M.check(buf)
      end)
    end,
    on_detach = forget,
  })
  api.nvim_create_autocmd({ "InsertLeave", "TextChanged", "TextChangedI", "BufWritePre" }, {
    buffer = buf,
    callback = function()
      M.check(buf)
    end,
  })
end

return M
