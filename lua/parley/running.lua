--- Draws the states of calls at their rows: which calls run, since when, and how they ended. The
--- host determines each call's state; this module counts the seconds.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.running")
local H = { states = {}, timers = {} }

local groups = { failed = "ParleyNote", refused = "ParleyNote" }
local tick_ms = 1000

--- Put a call into another state.
---@param call { id: string, state: string, name?: string, server?: string, text?: string, seconds?: number }
function M.change(buf, call)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local mark = H.unfinished(buf, call.id) or require("parley.folds").find(buf, call.id)
  if mark then
    local states = H.states[buf] or {}
    H.states[buf] = states
    local before = states[mark] or {}
    local since = call.state == before.state and before.since or vim.uv.now()
    states[mark] = {
      call = call.id,
      state = call.state,
      since = since,
      text = call.text,
      seconds = call.seconds,
    }
    H.draw(buf, mark)
    H.count(buf)
  end
  H.tell(buf, call)
end

--- A phrase for a call's state; nil if there is nothing to say.
---@param id integer the call's mark
---@param has_outcome boolean whether the row already shows the outcome
---@return string? text, string? group
function M.words(buf, id, has_outcome)
  local state = H.states[buf] and H.states[buf][id]
  if not state then
    return nil
  end
  local words = has_outcome and {} or { state.state }
  local running = state.state == "running" and math.floor((vim.uv.now() - state.since) / 1000) or 0
  if (state.seconds or 0) > 0 then
    table.insert(words, ("%.1f s"):format(state.seconds))
  elseif running > 0 then
    table.insert(words, ("%d s"):format(running))
  end
  if state.text then
    table.insert(words, ("(%s)"):format(state.text))
  end
  return #words > 0 and table.concat(words, " ") or nil, groups[state.state] or "ParleyStatus"
end

--- Whether a row on the screen shows the progress of a call.
function M.tells(buf)
  local lines = {}
  for id, state in pairs(H.states[buf] or {}) do
    if state.state == "running" and state.text then
      table.insert(lines, (require("parley.folds").row(buf, id) or -1) + 1)
    end
  end
  return #lines > 0
    and vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
      local info = vim.fn.getwininfo(win)[1]
      return vim.iter(lines):any(function(line)
        return info.tabnr == vim.fn.tabpagenr() and info.topline <= line and line <= info.botline
      end)
    end)
end

--- Forget a call that is gone.
function M.drop(buf, id)
  if H.states[buf] and H.states[buf][id] then
    H.states[buf][id] = nil
    api.nvim_buf_del_extmark(buf, ns, id)
  end
end

--- Forget a call's outcome, because the call is undecided again.
function M.reopen(buf, id)
  local state = H.states[buf] and H.states[buf][id]
  if state and not H.is_unfinished(state) then
    M.drop(buf, id)
  end
end

function M.forget(buf)
  H.states[buf] = nil
  H.count(buf)
end

--- End the states of all running calls.
function M.stop(buf)
  for id, state in pairs(H.states[buf] or {}) do
    if H.is_unfinished(state) then
      M.drop(buf, id)
    end
  end
  H.count(buf)
end

--- The mark of a call that has begun or waits to begin, even if its result is already in the text.
function H.unfinished(buf, call)
  for id, state in pairs(H.states[buf] or {}) do
    if state.call == call and H.is_unfinished(state) then
      return id
    end
  end
end

function H.is_unfinished(state)
  return state.state == "running" or state.state == "waiting"
end

--- Redraw a call's row or, if the line is not folded, the state after the line.
function H.draw(buf, id)
  local at = require("parley.folds").row(buf, id)
  local text, group = M.words(buf, id, false)
  if at and text then
    local opts = { id = id, virt_text = { { text, group } }, strict = false }
    api.nvim_buf_set_extmark(buf, ns, at, 0, opts)
  end
end

--- Count the seconds while a call runs.
function H.count(buf)
  local function running()
    return vim.iter(pairs(H.states[buf] or {})):filter(function(_, state)
      return state.state == "running"
    end)
  end
  local timer = H.timers[buf]
  if running():next() == nil then
    if timer then
      H.timers[buf] = nil
      timer:stop()
      timer:close()
    end
  elseif not timer then
    timer = assert(vim.uv.new_timer())
    H.timers[buf] = timer
    timer:start(
      tick_ms,
      tick_ms,
      vim.schedule_wrap(function()
        if H.timers[buf] == timer and api.nvim_buf_is_loaded(buf) then
          running():each(function(id)
            H.draw(buf, id)
          end)
        end
      end)
    )
  end
end

--- Notify listeners.
function H.tell(buf, call)
  local data = { buf = buf, id = call.id, name = call.name, server = call.server }
  if call.state == "running" and call.name then
    require("parley.status").emit("ParleyToolStart", data)
  elseif call.seconds then
    data.ok, data.seconds = call.state == "done", call.seconds
    require("parley.status").emit("ParleyToolEnd", data)
  end
end

return M
