--- The change that a waiting call would make, as a diff in which the user decides on the call,
--- perhaps after changes of their own.
local M = {}

local read_ms = 60000 -- the user reads the whole diff in its own tab page

--- Ask the host for the change by the call under the cursor.
function M.ask()
  require("parley.chat").ask("review", {})
end

--- Open a change as a diff.
---@param buf integer the chat
---@param row integer the call's row
---@param number integer the number of the call as it is drawn; 0 if it is not drawn
---@param diff { path: string, before?: string, after: string }
function M.open(buf, row, number, diff)
  local handles, chat = require("parley.handle"), require("parley.chat")
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local handle = handles.open(buf, row)
  require("parley.diff_tab").open({
    path = diff.path,
    before = diff.before,
    after = diff.after,
    title = "proposed",
    accept = "approve",
    on_accept = function(text, is_edited)
      local seen = { { number, read_ms } }
      local edited = is_edited and text or nil
      chat.ask(
        "choose",
        { key = "yo", rule = "key", reason = "", seen = seen, edited = edited },
        { handle = handle }
      )
    end,
    on_decline = function()
      require("parley.keys").refuse("yn", handle)
    end,
    on_close = function()
      handles.close(handle)
    end,
  })
end

return M
