--- Folds over what is long and seldom read. Made by hand, as it were: only where 'foldmethod' is "manual",
--- once for each place, and never over the cursor, so that opening or deleting one is respected.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.folds")

--- Close folds over rows, where none was made before.
---@param ranges integer[][] first row and the row after the last
function M.close(buf, ranges)
  for _, range in ipairs(ranges) do
    local known = api.nvim_buf_get_extmarks(buf, ns, { range[1], 0 }, { range[1], -1 }, { limit = 1 })
    if #known == 0 then
      api.nvim_buf_set_extmark(buf, ns, range[1], 0, {})
      for _, win in ipairs(vim.fn.win_findbuf(buf)) do
        M.fold(win, range[1] + 1, range[2])
      end
    end
  end
end

function M.fold(win, first, last)
  local wo, row = vim.wo[win], api.nvim_win_get_cursor(win)[1]
  if wo.foldmethod ~= "manual" or not wo.foldenable or (first <= row and row <= last) then
    return
  end
  if wo.foldtext == "foldtext()" then
    vim.wo[win][0].foldtext = "v:lua.require'parley.folds'.text()"
  end
  api.nvim_win_call(win, function()
    if vim.fn.foldlevel(first) == 0 then
      vim.cmd(("%d,%dfold"):format(first, last))
    end
  end)
end

--- What a closed fold shows: not the signature that a thinking block starts with.
function M.text()
  local line = vim.fn.getline(vim.v.foldstart)
  local count = vim.v.foldend - vim.v.foldstart
  local marker = require("parley.known").start("thinking")
  if vim.startswith(line, marker) then
    return ("%s thinking, %d %s "):format(marker, count, count == 1 and "line" or "lines")
  end
  return vim.fn.foldtext()
end

return M
