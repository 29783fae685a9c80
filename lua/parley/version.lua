--- The required Neovim version. The only part of Parley that older versions can run, too: 0.7 has
--- all it uses.
local M = {}

M.least = "0.10"

--- Whether this Neovim is new enough.
---@return boolean
function M.is_enough()
  return vim.fn.has("nvim-" .. M.least) == 1
end

--- Why an older version does not work, in at most 60 columns, which leave room for the rest of the
--- last line.
---@return string
function M.problem()
  local own = vim.fn.matchstr(vim.fn.execute("version"), [[NVIM v\zs[0-9.]\+]])
  return ("Parley needs Neovim %s or newer, this is %s"):format(M.least, own)
end

--- Show the reason.
function M.complain()
  vim.api.nvim_echo({ { M.problem(), "ErrorMsg" } }, true, {})
end

--- Replaces the module `parley` in an older Neovim: a configuration loads, and each use complains.
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
