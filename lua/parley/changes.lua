--- What has changed in each chat since the host was told: one range of lines, whatever was done to them.
---
--- It goes along with every message about that chat, so that the host knows the text and need not ask for it.
local M = {}

local api = vim.api
local H = { followed = {} }

---@class parley.Followed
---@field tick? integer the changedtick of the text that the host knows; nil where it knows none
---@field start? integer where what differs from it starts; nil where nothing does
---@field last? integer where it ends there
---@field now? integer where it ends in the text as it is

--- Follow the changes of a buffer; again means from the beginning.
function M.follow(buf)
  ---@type parley.Followed
  local followed = {}
  H.followed[buf] = followed
  local function over()
    return H.followed[buf] ~= followed
  end
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new)
      if over() then
        return true
      end
      H.extend(followed, first, last, new)
      if new == 0 and api.nvim_buf_line_count(buf) == 1 then
        followed.tick = nil -- of a text deleted whole an empty line stays, which is not counted
      end
    end,
    on_reload = function()
      if not over() then
        followed.tick = nil
      end
    end,
    on_detach = function()
      if not over() then
        H.followed[buf] = nil
      end
    end,
  })
end

--- What the host is to be told, and knows from then on; nil where the buffer is not followed.
---@param tick? integer the changedtick of the text that the host says it knows
---@return table?
function M.take(buf, tick)
  local followed = H.followed[buf]
  if not followed or not api.nvim_buf_is_loaded(buf) then
    return nil
  end
  require("parley.guard").check(buf)
  local now = api.nvim_buf_get_changedtick(buf)
  local change = { tick = now, count = api.nvim_buf_line_count(buf) }
  if not followed.tick or tick and tick ~= followed.tick then
    change.lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  else
    change.since = followed.tick
    if followed.start then
      change.start, change["end"] = followed.start, followed.last
      change.lines = api.nvim_buf_get_lines(buf, followed.start, followed.now, true)
    end
  end
  M.agree(buf)
  return change
end

--- The host knows the text as it is now.
function M.agree(buf)
  local followed = H.followed[buf]
  if followed then
    followed.tick, followed.start = api.nvim_buf_get_changedtick(buf), nil
  end
end

--- A new host knows nothing.
function M.host_ended()
  for _, followed in pairs(H.followed) do
    followed.tick = nil
  end
end

function M.forget(buf)
  H.followed[buf] = nil
end

--- One more change: the lines from `first` up to `last` of the text as it was have become those up to `new`.
function H.extend(followed, first, last, new)
  if not followed.start then
    followed.start, followed.last, followed.now = first, last, new
    return
  end
  local between = math.max(followed.now, last)
  followed.last = followed.last + between - followed.now
  followed.now = between + new - last
  followed.start = math.min(followed.start, first)
end

return M
