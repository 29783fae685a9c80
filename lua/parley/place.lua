--- Where Parley's other files are: in a clone, in the folder above `lua/`. LuaRocks keeps the Lua
--- modules in a folder of their own, the other folders in one of 'runtimepath', and single files
--- there in `conf/`.
local M = {}

local H = {}

H.modules = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
H.main = "python/parley/nvim/main.py"

--- The folder with `plugin/`, `python/` and `rplugin/`.
---@return string
function M.root()
  local above = vim.fs.dirname(vim.fs.dirname(H.modules))
  if H.exists(vim.fs.joinpath(above, H.main)) then
    return above
  end
  for _, main in ipairs(vim.api.nvim_get_runtime_file(H.main, true)) do
    -- A relative folder of 'runtimepath' belongs to the working directory, which may be a stranger's.
    if main:match("^/") or main:match("^%a:") then
      return vim.fn.fnamemodify(main, ":h:h:h:h")
    end
  end
  return above
end

--- The path of a single file of Parley's, such as `requirements.lock`.
---@param name string
---@return string
function M.file(name)
  local path = vim.fs.joinpath(M.root(), name)
  local moved = vim.fs.joinpath(M.root(), "conf", name)
  return not H.exists(path) and H.exists(moved) and moved or path
end

function H.exists(path)
  return vim.uv.fs_stat(path) ~= nil
end

return M
