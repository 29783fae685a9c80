--- Messages that never end in a "Press ENTER" prompt: one would keep the editor from taking what streams in.
local M = {}

local H = { most = 6, patience_ms = 10000, queue = {} }

---@param text string shown as one line, however long
---@param level integer one of vim.log.levels
function M.show(text, level)
  text = vim.trim(text:gsub("%s+", " ")):gsub("%c", H.escape)
  table.insert(H.queue, { text, level })
  -- Later, since an error message in the middle of a command would make the command fail; and together.
  if #H.queue == 1 then
    vim.schedule(H.flush)
  end
end

--- A NUL would make one message two, and have Neovim wait for a key.
function H.escape(control)
  return ("\\x%02x"):format(control:byte())
end

function H.flush()
  local queue = H.queue
  H.queue = {}
  if H.is_plain() then
    H.make_room(queue)
  end
  for _, message in ipairs(queue) do
    vim.notify(message[1], message[2])
  end
end

--- Whether messages go to the command line, and not to a plugin or a UI of their own.
function H.is_plain()
  local source = debug.getinfo(vim.notify, "S").source
  local uis = vim.api.nvim_list_uis()
  return source:find("vim/_editor.lua", 1, true) ~= nil and #uis > 0 and not uis[1].ext_messages
end

--- Make the command line high enough for messages, until the user goes on; cut what is too long even so.
function H.make_room(messages)
  local columns = vim.o.columns
  local used = columns - vim.v.echospace
  local needed = 0
  for _, message in ipairs(messages) do
    local room = math.max(1, math.floor(H.most / #messages)) * columns - used - 1
    if vim.api.nvim_strwidth(message[1]) > room then
      message[1] = vim.fn.strcharpart(message[1], 0, room - 2) .. "…"
    end
    needed = needed + math.ceil((vim.api.nvim_strwidth(message[1]) + used) / columns)
  end
  if needed > vim.o.cmdheight then
    H.restore = H.restore or H.restorer(vim.o.cmdheight)
    vim.o.cmdheight = math.min(needed, math.max(1, vim.o.lines - 4))
  end
  vim.cmd.redraw() -- what was said before makes place
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
