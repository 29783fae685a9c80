--- Messages that never end in a "Press ENTER" prompt: one would keep the editor from taking what streams in.
local M = {}

local H = { most = 6, patience_ms = 10000 }

---@param text string one line, however long
---@param level integer one of vim.log.levels
function M.show(text, level)
  if H.is_plain() then
    text = H.make_room(text)
  end
  vim.notify(text, level)
end

--- Whether messages go to the command line, and not to a plugin or a UI of their own.
function H.is_plain()
  local source = debug.getinfo(vim.notify, "S").source
  local uis = vim.api.nvim_list_uis()
  return source:find("vim/_editor.lua", 1, true) ~= nil and #uis > 0 and not uis[1].ext_messages
end

--- Make the command line high enough for a text, until the user goes on. Returns what fits of the text.
function H.make_room(text)
  local columns, used = vim.o.columns, vim.o.columns - vim.v.echospace
  local room = H.most * columns - used - 1
  if vim.fn.strdisplaywidth(text) > room then
    text = vim.fn.strcharpart(text, 0, room - 2) .. "…"
  end
  local needed = math.ceil((vim.fn.strdisplaywidth(text) + used) / columns)
  if needed > vim.o.cmdheight then
    H.restore = H.restore or H.restorer(vim.o.cmdheight)
    vim.o.cmdheight = needed
    vim.cmd.redraw()
  end
  return text
end

--- What gives the lines back, at the next thing the user does or after a while.
function H.restorer(height)
  local group = vim.api.nvim_create_augroup("parley.messages", {})
  local function restore()
    if H.restore == restore then
      H.restore = nil
      vim.api.nvim_del_augroup_by_id(group)
      vim.o.cmdheight = height
    end
  end
  -- Not for a cursor that moves along with an answer: only the user's keys end it.
  vim.defer_fn(function()
    if H.restore == restore then
      vim.api.nvim_create_autocmd({ "CmdlineEnter", "InsertEnter", "WinEnter", "BufEnter" }, {
        group = group,
        callback = vim.schedule_wrap(restore),
      })
      vim.on_key(function(_, typed)
        if typed and typed ~= "" then
          vim.on_key(nil, H.keys)
          vim.schedule(restore)
        end
      end, H.keys)
    end
  end, 300)
  vim.defer_fn(restore, H.patience_ms)
  return restore
end

H.keys = vim.api.nvim_create_namespace("parley.messages")

return M
