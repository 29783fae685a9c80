--- Shows a chat's status: as a variable, an event, a part of the status line, and a line at the
--- answer's tip.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.status")
local H = { running = {}, due = {} }

local frames = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }
local patience_ms, frame_ms = 300, 120

--- Show a buffer's current step; "" if there is none.
---@param text string
---@param id? integer the handle of the turn; the status is shown at its tip
function M.show(buf, text, id)
  local run = H.running[buf]
  if text == "" then
    if run then
      H.running[buf] = nil
      run.timer:stop()
      run.timer:close()
      H.erase(buf)
    end
  else
    run = run or H.begin(buf)
    run.text, run.step, run.handle = text, vim.uv.now(), id or run.handle
  end
  if api.nvim_buf_is_valid(buf) and vim.b[buf].parley_status ~= text then
    vim.b[buf].parley_status = text
    M.emit("ParleyStatus", { buf = buf, text = text })
    H.redraw(buf)
  end
end

--- Store the number of waiting calls.
---@param calls integer
function M.waiting(buf, calls)
  if api.nvim_buf_is_valid(buf) and vim.b[buf].parley_waiting ~= calls then
    vim.b[buf].parley_waiting = calls
    H.redraw(buf)
    if calls > 0 then
      M.emit("ParleyWaiting", { buf = buf, calls = calls })
    end
  end
end

--- A turn has ended: notify listeners and the user; `unseen` is shown if no window shows the chat.
---@param facts { event: string, agent: string, why: string, seen: string, unseen: string, level: string }
function M.ended(buf, facts)
  local text = H.is_seen(buf) and facts.seen or facts.unseen
  if text ~= "" then
    require("parley.host").message(text, facts.level)
  end
  if facts.event ~= "" and api.nvim_buf_is_valid(buf) then
    M.emit(facts.event, { buf = buf, agent = facts.agent, why = facts.why })
  end
  if package.loaded["parley.rewrite"] then
    require("parley.rewrite").answered(buf)
  end
end

--- Notify listeners.
function M.emit(pattern, data)
  api.nvim_exec_autocmds("User", { pattern = pattern, modeline = false, data = data })
end

--- Store the tokens used.
function M.usage(buf, usage)
  if api.nvim_buf_is_valid(buf) then
    vim.b[buf].parley_usage = usage
  end
end

--- Store the agent's name.
function M.agent(buf, name)
  if api.nvim_buf_is_valid(buf) then
    vim.b[buf].parley_agent = name
    H.redraw(buf)
  end
end

--- Move the line to the moved tip, and keep it visible in windows that follow the tip.
---@param is_there? boolean whether the tip is in the same row as before
function M.moved(buf, is_there)
  local run = H.running[buf]
  if not run or not run.shown then
    return
  end
  run.moved = vim.uv.now()
  local is_due = H.turn(run)
  local row = is_there and not is_due and run.row or H.draw(buf, run)
  if row then
    H.make_room(buf, row)
  end
end

--- Turn the spinner, if its frame has been shown for long enough.
---@return boolean has_turned
function H.turn(run)
  local is_due = vim.uv.now() - run.turned >= frame_ms
  if is_due then
    run.turned, run.frame = vim.uv.now(), run.frame % #frames + 1
  end
  return is_due
end

--- For a status line: the current step, else the waiting calls, else the chat's agent and tokens.
--- `%{%…%}` and `%!` evaluate a function's text again (|'statusline'|), so escape each `%`, which
--- may come from a stranger.
function M.line(buf)
  return (H.line(buf):gsub("%%", "%%%%"))
end

--- A chat's current step, else its waiting calls; "" if there is neither.
function M.step(buf)
  local text, calls = vim.b[buf].parley_status or "", vim.b[buf].parley_waiting or 0
  if text ~= "" or calls == 0 then
    return text
  end
  return calls == 1 and "1 call is waiting" or ("%d calls are waiting"):format(calls)
end

--- Draw a buffer's status lines soon, once for all changes that arrive together, and not the rest of
--- the screen, as `:redrawstatus` would: a change of the text may follow at once.
function H.redraw(buf)
  if H.due[buf] then
    return
  end
  H.due[buf] = true
  vim.schedule(function()
    H.due[buf] = nil
    if api.nvim_buf_is_valid(buf) then
      api.nvim__redraw({ buf = buf, statusline = true, winbar = true, flush = false })
    end
  end)
end

function H.line(buf)
  buf = (buf == nil or buf == 0) and api.nvim_get_current_buf() or buf
  local variables = vim.b[buf]
  if variables.parley_status == nil then
    return ""
  end
  local step = M.step(buf)
  if step ~= "" then
    return step
  end
  local agent, usage = variables.parley_agent, variables.parley_usage
  if agent and usage and usage.chat then
    local tokens = ("↑%s ↓%s"):format(H.count(usage.chat.input), H.count(usage.chat.output))
    return ("%s %s%s"):format(agent, tokens, H.fullness(usage.window))
  end
  return agent or ""
end

function H.begin(buf)
  local now = vim.uv.now()
  local run =
    { timer = assert(vim.uv.new_timer()), since = now, frame = 0, turned = now, moved = 0 }
  H.running[buf] = run
  local turn = vim.schedule_wrap(function()
    if H.running[buf] ~= run then
      return
    end
    H.turn(run)
    if run.shown then
      H.draw(buf, run)
    elseif vim.uv.now() - run.step >= patience_ms then
      run.shown = true
      M.moved(buf)
    end
  end)
  run.timer:start(frame_ms, frame_ms, function()
    if vim.uv.now() - run.moved >= frame_ms then -- otherwise, the pieces of a reply turn it
      turn()
    end
  end)
  return run
end

--- Draw the status line at the tip. Returns the row above; nil if there is no place for the line,
--- or if a call's row shows the status.
function H.draw(buf, run)
  local row = H.row(buf, run)
  run.row = nil
  if not row or require("parley.running").tells(buf) then
    H.erase(buf)
    return nil
  end
  local seconds = math.floor((vim.uv.now() - run.since) / 1000)
  local elapsed = seconds > 0 and (" %ds"):format(seconds) or ""
  local line = { { frames[math.max(run.frame, 1)] .. " " .. run.text .. elapsed, "ParleyStatus" } }
  local below, is_folded = require("parley.folds").below(buf, row)
  local covered = not is_folded and H.covered(run)
  if covered then
    if run.drawn ~= line[1][1] or H.drawn_row(buf) ~= covered then
      local opts =
        { id = 1, virt_text = line, virt_text_pos = "overlay", priority = 201, strict = false }
      api.nvim_buf_set_extmark(buf, ns, covered, 0, opts)
      run.drawn = line[1][1]
    end
    run.row = row
    return row
  end
  run.drawn = nil
  local opts = { id = 1, virt_lines = { line }, virt_lines_above = is_folded, strict = false }
  api.nvim_buf_set_extmark(buf, ns, is_folded and below or row, 0, opts)
  return row
end

--- The row in which the status is drawn; marks move with the text.
function H.drawn_row(buf)
  return api.nvim_buf_get_extmark_by_id(buf, ns, 1, {})[1]
end

function H.row(buf, run)
  local handles = require("parley.handle")
  local handle = handles.get(run.handle)
  local row = handle and (handles.row(handle, "tip") or handles.row(handle, "anchor"))
  -- The row may be past the last line, because the user may have removed rows below the tip.
  return row and math.min(row, api.nvim_buf_line_count(buf) - 1)
end

--- The row below the tip, if it is covered; the status is drawn there.
function H.covered(run)
  local handles = require("parley.handle")
  local handle = handles.get(run.handle)
  local row, covered = nil, false
  if handle then
    row, covered = handles.says_more(handle)
  end
  return covered and row or nil
end

--- Scroll if a window ends at the cursor line, because Neovim does not scroll for lines drawn below
--- it.
function H.make_room(buf, row)
  local mode = api.nvim_get_mode().mode
  local current = api.nvim_get_current_win()
  for _, win in ipairs((mode == "n" or mode == "i") and require("parley.handle").at(buf, row) or {}) do
    if win == current then
      H.scroll(win, row)
    else
      api.nvim_win_call(win, function()
        H.scroll(win, row)
      end)
    end
  end
end

--- Scroll the current window if it ends at the cursor's line.
function H.scroll(win, row)
  local line = vim.fn.winline()
  local missing = math.min(line + H.rows_on(win, row) - vim.fn.winheight(win), line - 1)
  if missing > 0 then
    vim.cmd.normal({ missing .. vim.keycode("<C-e>"), bang = true })
  end
end

--- How many rows of the cursor's line the current window shows, from the cursor's row on.
function H.rows_on(win, row)
  if
    vim.fn.col(".") + 1 >= vim.fn.col("$")
    or vim.fn.foldclosed(row + 1) ~= -1
    or not vim.wo[win].wrap
  then
    return 1
  end
  local from = math.max(vim.fn.virtcol(".") - 1, 0)
  local height =
    api.nvim_win_text_height(win, { start_row = row, start_vcol = from, end_row = row })
  return height.all - height.fill
end

function H.erase(buf)
  if api.nvim_buf_is_valid(buf) then
    api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  end
end

--- Whether a window on the screen shows the buffer.
function H.is_seen(buf)
  local here = api.nvim_get_current_tabpage()
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    return api.nvim_win_get_tabpage(win) == here
  end)
end

--- The used share of the model's window, if it is at least one hundredth.
function H.fullness(window)
  local part = window and math.floor(window.share * 100 + 0.5) or 0
  return part > 0 and (" %d%%"):format(part) or ""
end

function H.count(tokens)
  return tokens < 1000 and tostring(tokens) or ("%.1fk"):format(tokens / 1000)
end

return M
