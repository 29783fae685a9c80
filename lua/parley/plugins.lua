--- Finds modules of other plugins, if they are installed.
local M = {}

local H = {}

--- Another plugin's module; nil if it is missing. Unlike `require`, this function does not search
--- the working directory, whose files anyone may have written.
---@param name string
---@return table?
function M.get(name)
  local before = { path = package.path, cpath = package.cpath }
  local apart = vim.tbl_map(H.apart, before)
  package.path, package.cpath = apart.path, apart.cpath
  local ok, module = pcall(require, name)
  for kind, places in pairs(apart) do
    if package[kind] == places then -- otherwise keep the places that the plugin has added
      package[kind] = before[kind]
    end
  end
  return ok and type(module) == "table" and module or nil
end

--- The places where Lua looks for modules, without those relative to the working directory.
function H.apart(places)
  local absolute = vim.tbl_filter(function(place)
    return not vim.startswith(place, ".")
  end, vim.split(places, ";"))
  return table.concat(absolute, ";")
end

--- Whether a function is Neovim's own. A plugin may have replaced it, perhaps by a callable table,
--- like nvim-notify. A built-in function's source has no folder (0.11, and 0.13 without the `@`), or
--- there is no source (0.12).
---@param func any
---@return boolean
function M.is_builtin(func)
  if type(func) ~= "function" then
    return false
  end
  local source = debug.getinfo(func, "S").source
  local is_inside = source:find("^@?vim/") or source:find("^=?%?$")
  return is_inside ~= nil or vim.startswith(source, "@" .. vim.env.VIMRUNTIME)
end

return M
