--- Modules of other plugins, where these are installed.
local M = {}

local H = {}

--- A module of another plugin; nil where it is not there. Lua also looks in the working directory, which may
--- be anybody's: not here.
---@param name string
---@return table?
function M.get(name)
  local before = { path = package.path, cpath = package.cpath }
  local apart = vim.tbl_map(H.apart, before)
  package.path, package.cpath = apart.path, apart.cpath
  local ok, module = pcall(require, name)
  for kind, places in pairs(apart) do
    if package[kind] == places then -- else the plugin has added some, and these stay
      package[kind] = before[kind]
    end
  end
  return ok and type(module) == "table" and module or nil
end

--- Places where Lua looks for modules, without those that depend on the working directory.
function H.apart(places)
  local absolute = vim.tbl_filter(function(place)
    return not vim.startswith(place, ".")
  end, vim.split(places, ";"))
  return table.concat(absolute, ";")
end

--- Whether a function is Neovim's own, and no plugin has replaced it, be it by a table that can be called, as
--- nvim-notify is. What is built into the program has a source without a folder (0.11), or none (0.12).
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
