--- The required Neovim version. Only this module must also run on older versions; it uses nothing
--- newer than 0.7.
local M = {}

M.least = "0.10"

--- Whether this Neovim is new enough.
---@return boolean
function M.is_enough()
  return vim.fn.has("nvim-" .. M.least) == 1
end

--- The message that this version is too old, in at most 60 columns, because the message line has
--- other text at its end.
---@return string
function M.problem()
  local own = vim.fn.matchstr(vim.fn.execute("version"), [[NVIM v\zs[0-9.]\+]])
  return ("Parley needs Neovim %s or newer; this is %s"):format(M.least, own)
end

--- Show the message.
function M.complain()
  vim.api.nvim_echo({ { M.problem(), "ErrorMsg" } }, true, {})
end

--- Replaces the module `parley` in an older Neovim: the configuration loads, and each use shows the
--- message.
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
