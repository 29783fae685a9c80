--- The Neovim that is needed. The one part of Parley that older ones can run, too: 0.7 knows all it uses.
local M = {}

M.least = "0.10"

--- Whether this Neovim is new enough.
---@return boolean
function M.is_enough()
  return vim.fn.has("nvim-" .. M.least) == 1
end

--- What is wrong with an older one, in a line that fits into 60 columns beside what else is in the last line.
---@return string
function M.problem()
  local own = vim.fn.matchstr(vim.fn.execute("version"), [[NVIM v\zs[0-9.]\+]])
  return ("Parley needs Neovim %s or newer, this is %s"):format(M.least, own)
end

--- Say it.
function M.complain()
  vim.api.nvim_echo({ { M.problem(), "ErrorMsg" } }, true, {})
end

--- What stands for the module `parley` in an older Neovim: a configuration loads, and what is used complains.
function M.module()
  local silent = {
    given = {},
    setup = function() end,
    status = function()
      return ""
    end,
  }
  return setmetatable(silent, {
    __index = function()
      return M.complain
    end,
  })
end

return M
