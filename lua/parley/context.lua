--- Reads text from the editor for a chat's references: the file edited before the chat, and that
--- file's last selection and diagnostics. The host decides how to use the text.
local M = {}

local api = vim.api
local H = {}

---@class parley.Context
---@field name string the file's displayed name
---@field path string the file's path; "" if there is no file yet
---@field kind string the buffer's 'buftype'
---@field language string the buffer's 'filetype'
---@field loaded boolean if false, the fields below are missing
---@field difference? "unsaved"|"stale"|"deleted" why the text is not the file's text
---@field lines? string[]
---@field first? integer the number of the first line
---@field size? integer in bytes, only if it is more than `most`; then there are no lines
---@field diagnostics? table[] row, column, severity, message, source
---@field count? integer the number of all diagnostics

---@param chat integer
---@param what "buffer"|"selection"|"diagnostics"
---@param most integer the maximum number of bytes, or of diagnostics
---@return parley.Context|{} context empty if there is no such file
function M.text(chat, what, most)
  local buf = M.beside(chat)
  if not buf then
    return vim.empty_dict()
  end
  local difference = what ~= "diagnostics" and require("parley.open_files").difference(buf) or nil
  local context = {
    name = M.name(buf),
    path = api.nvim_buf_get_name(buf),
    kind = vim.bo[buf].buftype,
    language = vim.bo[buf].filetype,
    loaded = api.nvim_buf_is_loaded(buf),
    difference = difference,
  }
  if context.loaded then
    H[what](buf, most, context)
  end
  return context
end

--- The displayed name of a buffer.
---@param buf integer
---@return string
function M.name(buf)
  local name = api.nvim_buf_get_name(buf)
  return name == "" and "[No Name]" or vim.fn.fnamemodify(name, ":~:.")
end

--- The alternate file in the window that shows a chat; if it has none, the file in the previous
--- window.
---@return integer? buf
function M.beside(chat)
  local here = api.nvim_get_current_win()
  local win = api.nvim_win_get_buf(here) == chat and here or vim.fn.win_findbuf(chat)[1]
  if not win then
    return nil
  end
  local alternate = api.nvim_win_call(win, function()
    return vim.fn.bufnr("#")
  end)
  if alternate > 0 and alternate ~= chat then
    return alternate
  end
  local other = win == here and vim.fn.win_getid(vim.fn.winnr("#")) or here
  local buf = other > 0 and api.nvim_win_get_buf(other)
  return buf and buf ~= chat and buf or nil
end

--- Read the lines from `first` to `last`, counted from 1, unless they have too many bytes.
function H.lines(buf, first, last, most, context)
  local size = api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, first - 1)
  if size > most then
    context.size = size
  else
    context.first, context.lines = first, api.nvim_buf_get_lines(buf, first - 1, last, false)
  end
end

function H.buffer(buf, most, context)
  H.lines(buf, 1, api.nvim_buf_line_count(buf), most, context)
end

function H.selection(buf, most, context)
  local from, to = api.nvim_buf_get_mark(buf, "<")[1], api.nvim_buf_get_mark(buf, ">")[1]
  if from > 0 and to >= from then
    H.lines(buf, from, math.min(to, api.nvim_buf_line_count(buf)), most, context)
  end
  if context.lines then
    api.nvim_buf_call(buf, function()
      context.lines = H.region(context.lines, from) or context.lines
    end)
  end
end

--- The selected part of lines in the current buffer that begin at `first`; nil if they are selected
--- completely.
function H.region(lines, first)
  local mode = vim.fn.visualmode()
  if mode == "" or mode == "V" then
    return nil
  end
  -- The text may have become shorter since.
  local function place(mark, row)
    local pos = vim.fn.getpos(mark)
    local text = lines[row]
    return { pos[1], first + row - 1, math.min(pos[3], #text + 1), pos[4] }
  end
  return vim.fn.getregion(place("'<", 1), place("'>", #lines), { type = mode })
end

function H.diagnostics(buf, most, context)
  local all = vim.diagnostic.get(buf)
  table.sort(all, function(one, other)
    if one.severity ~= other.severity then
      return one.severity < other.severity
    end
    return one.lnum < other.lnum or one.lnum == other.lnum and one.col < other.col
  end)
  context.count = #all
  context.diagnostics = vim.tbl_map(function(one)
    local severity = vim.diagnostic.severity[one.severity]
    return { one.lnum + 1, one.col + 1, severity, one.message, one.source or "" }
  end, vim.list_slice(all, 1, most))
end

return M
