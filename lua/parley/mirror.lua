--- Tracks the changes in each chat since the host was last told: always one range of lines.
---
--- Each message about a chat includes this range, so the host knows the text without asking.
local M = {}

local api = vim.api
local H = { followed = {} }

---@class parley.Followed
---@field tick? integer the changedtick of the text that the host knows, if any
---@field start? integer the first line that differs from that text; nil if none differs
---@field last? integer the end of the range in that text
---@field now? integer the end of the range in the current text

--- Follow a buffer's changes; a second call starts again.
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
        followed.tick = nil -- when all text is deleted, an uncounted empty line remains
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

--- The change to send to the host; counts as known from now on. Nil if the buffer is not followed.
---@param tick? integer the changedtick of the text that the host reports to know
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

--- Record that the host knows the current text.
function M.agree(buf)
  local followed = H.followed[buf]
  if followed then
    followed.tick, followed.start = api.nvim_buf_get_changedtick(buf), nil
  end
end

--- Record that a new host knows no text.
function M.host_ended()
  for _, followed in pairs(H.followed) do
    followed.tick = nil
  end
end

function M.forget(buf)
  H.followed[buf] = nil
end

--- Add a change: the lines from `first` to `last` of the old text became the lines up to `new`.
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
