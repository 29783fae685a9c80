--- Modules of other plugins, if installed.
local M = {}

local H = {}

--- A module of another plugin; nil if it is missing. Lua also searches the working directory, which
--- may come from anyone; this function does not.
---@param name string
---@return table?
function M.get(name)
  local before = { path = package.path, cpath = package.cpath }
  local apart = vim.tbl_map(H.apart, before)
  package.path, package.cpath = apart.path, apart.cpath
  local ok, module = pcall(require, name)
  for kind, places in pairs(apart) do
    if package[kind] == places then -- otherwise the plugin has added some, which stay
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

--- Whether a function is Neovim's own, and no plugin has replaced it, not even by a callable table,
--- as nvim-notify does. A built-in function has a source without a folder (0.11), or none (0.12).
---@param func any
---@return boolean
function M.is_builtin(func)
  if type(func) ~= "function" then
    return false
  end
  local source = debug.getinfo(func, "S").source
  local is_inside = source:find("^@vim/") or source:find("^=?%?$")
  return is_inside ~= nil or vim.startswith(source, "@" .. vim.env.VIMRUNTIME)
end

return M
