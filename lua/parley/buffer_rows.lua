--- Checks row numbers from callers; they may be outdated, miscounted or missing.
local M = {}

local api = vim.api

--- A buffer's row nearest to a number, as an integer, and not past the last line. 0 if the buffer
--- is not loaded, or if `row` is not a number.
---@param row any counted from 0
---@return integer
function M.within(buf, row)
  if type(row) ~= "number" or row ~= row or not api.nvim_buf_is_loaded(buf) then
    return 0
  end
  return math.max(0, math.min(math.floor(row), api.nvim_buf_line_count(buf) - 1))
end

--- Whether a buffer has a line at a row.
---@param row any
function M.has(buf, row)
  return api.nvim_buf_is_loaded(buf) and M.within(buf, row) == row
end

--- The line at a row; "" if there is none.
---@param row any
---@return string
function M.line(buf, row)
  return M.has(buf, row) and api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
end

return M
