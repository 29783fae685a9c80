--- Runs a command in a terminal window for the host, which receives the exit code.
local M = {}

local api = vim.api

--- Open a window below with a terminal. Its only variables are those in `env`. The window closes
--- when the command ends with 0.
---@param id integer
---@param command string[]
---@param env table<string, string>
---@param folder string
function M.run(id, command, env, folder)
  vim.schedule(function() -- the list of another plugin may still be closing
    vim.cmd("botright 15new")
    local win, buf = api.nvim_get_current_win(), api.nvim_get_current_buf()
    local options = { env = env, clear_env = true, cwd = folder }
    options.on_exit = function(_, code)
      require("parley.host").mention("answered", { id = id, value = code })
      if code == 0 and api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == buf then
        pcall(api.nvim_win_close, win, true)
      end
    end
    local start = vim.fn.has("nvim-0.11") == 1 and vim.fn.jobstart or vim.fn.termopen
    options.term = start == vim.fn.jobstart or nil
    local ok, job = pcall(start, command, options)
    if not ok or job <= 0 then
      pcall(api.nvim_win_close, win, true)
      require("parley.host").mention("answered", { id = id, value = -1 })
      return
    end
    vim.cmd.startinsert()
  end)
end

return M
