--- Tracks how long each waiting tool call has been on the screen with everything drawn for it,
--- because a key decides only on calls that the user has seen. The host gives each drawn call a
--- number, which changes if the call is drawn differently. The host decides how long is long
--- enough.
local M = {}

local api = vim.api
local H = { seen = {}, reading = nil }

---@class parley.Seen
---@field ms number how long the call was on the screen before `since`
---@field since? number when the call appeared; nil while it is off the screen
---@field told? boolean whether the user was taken to the call; then its row is enough

--- The time in milliseconds. Not `vim.uv.now`, which stops while Neovim works.
function M.now()
  return vim.uv.hrtime() / 1e6
end

--- Record the calls that are now on the screen.
---@param buf integer
function M.look(buf)
  local now, here = M.now(), {}
  local seen = H.seen[buf] or {}
  H.seen[buf] = seen
  for _, sighting in ipairs(H.on_screen(buf)) do
    local one = seen[sighting] or { ms = 0 }
    seen[sighting], here[sighting] = one, true
    one.since = one.since or now
  end
  for sighting, one in pairs(seen) do
    if one.since and not here[sighting] then
      one.ms, one.since = one.ms + now - one.since, nil
    end
  end
end

--- Record the calls on the screen when everything is drawn, including signs.
function M.look_soon(buf)
  if #require("parley.view").sightings(buf) == 0 then
    return
  end
  vim.schedule(function()
    if api.nvim_buf_is_loaded(buf) then
      local refit = require("parley.view").refit
      refit(buf)
      vim.cmd.redraw()
      if refit(buf) then -- the sign column has appeared or disappeared
        vim.cmd.redraw()
      end
      M.look(buf)
    end
  end)
end

--- Measure the calls on the screen from now on, because another program had the screen.
---@param buf integer
function M.restart(buf)
  for _, one in pairs(H.seen[buf] or {}) do
    one.since = one.since and M.now()
  end
end

--- Record that the user was taken to some calls: to the first call, even if it does not fit into
--- the window, and to other calls whose rows are in the window. Measure all of them from now on.
---@param win? integer nil if the user went elsewhere
---@param sightings integer[]
function M.show(buf, win, sightings)
  local seen, is_there = H.seen[buf] or {}, {}
  H.seen[buf] = seen
  for _, call in ipairs(win and require("parley.view").drawn(win) or {}) do
    is_there[call.sighting] = H.has_row(win, call.row)
  end
  for i, sighting in ipairs(sightings) do
    local told = win ~= nil and (i == 1 or is_there[sighting])
    seen[sighting] = told and { ms = 0, since = M.now(), told = true } or nil
  end
end

--- The user reads a whole call in a separate window. The call counts as seen when its last row was
--- shown and no earlier row was skipped.
---@param sighting integer
function M.read(buf, sighting, win)
  local reading = H.reading
  if not reading or reading.win ~= win or reading.sighting ~= sighting then
    reading = { buf = buf, sighting = sighting, win = win, rows = 0 }
    H.reading = reading
    local group = api.nvim_create_augroup("parley.sightings", {})
    api.nvim_create_autocmd({ "WinScrolled", "WinClosed" }, {
      group = group,
      pattern = tostring(win),
      callback = function(event)
        if event.event == "WinClosed" then
          H.reading = nil
          pcall(api.nvim_del_augroup_by_id, group)
        end
        M.look(buf)
      end,
    })
  end
  M.look(buf)
end

--- How long each drawn call has been on the screen: its number and milliseconds.
---@return { [1]: integer, [2]: number }[]
function M.times(buf)
  M.look(buf)
  local times, now = {}, M.now()
  for _, sighting in ipairs(require("parley.view").sightings(buf)) do
    local one = H.seen[buf][sighting]
    if one then
      table.insert(times, { sighting, one.ms + now - (one.since or now) })
    end
  end
  return times
end

function M.forget(buf)
  H.seen[buf] = nil
end

--- The numbers of the calls that are on the screen.
---@return integer[]
function H.on_screen(buf)
  local here, seen, found = api.nvim_get_current_tabpage(), H.seen[buf], {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local calls = api.nvim_win_get_tabpage(win) == here and require("parley.view").drawn(win) or {}
    for _, call in ipairs(calls) do
      local one = seen[call.sighting]
      if H.has_row(win, call.row) and (one and one.told or H.is_in_window(win, call)) then
        table.insert(found, call.sighting)
      end
    end
  end
  if H.reading and H.reading.buf == buf and H.has_read(H.reading) then
    table.insert(found, H.reading.sighting)
  end
  return found
end

--- Whether the window for reading a call has shown all rows.
function H.has_read(reading)
  if not api.nvim_win_is_valid(reading.win) then
    return false
  end
  local info = vim.fn.getwininfo(reading.win)[1]
  local view = api.nvim_win_call(reading.win, vim.fn.winsaveview)
  local function height(last)
    return last < 0 and 0 or api.nvim_win_text_height(reading.win, { end_row = last }).all
  end
  local hidden = math.floor(view.skipcol / math.max(info.width - info.textoff, 1))
  local above = height(info.topline - 2) + hidden
  if above <= reading.rows then
    reading.rows = math.max(reading.rows, above + info.height)
  end
  return reading.rows >= height(api.nvim_buf_line_count(info.bufnr) - 1)
end

--- Whether a call's row is in a window.
function H.has_row(win, row)
  local info = vim.fn.getwininfo(win)[1]
  return row >= info.topline - 1 and row < info.botline
end

--- Whether a whole call is in a window: its row, or its line with the text drawn below or before
--- it; and its part of the block below the calls.
function H.is_in_window(win, call)
  if not call.is_whole or call.block and not require("parley.view").has_block(win, call.block) then
    return false
  end
  local info = vim.fn.getwininfo(win)[1]
  local top, width = info.topline - 1, math.max(info.width - info.textoff, 1)
  if not H.has_row(win, call.row) then
    return false
  end
  local view, folded = unpack(api.nvim_win_call(win, function()
    return { vim.fn.winsaveview(), vim.fn.foldclosed(call.row + 1) ~= -1 }
  end))
  if width < call.width and (call.block or not folded) then
    return false -- text drawn next to a line is cut at the window's edge, without a mark
  elseif folded then
    local is_whole = require("parley.folds").is_whole(win, call.row)
    return is_whole == true or is_whole == false and call.is_spelled
  elseif call.is_cut and not call.is_spelled then
    return false
  end
  local hidden = math.floor(view.skipcol / width)
  local function height(last)
    return last < top and 0
      or api.nvim_win_text_height(win, { start_row = top, end_row = last }).all
  end
  if call.before > 0 then
    local is_at_start = call.row > top or hidden == 0
    return is_at_start
      and height(call.row - 1) - hidden + math.ceil(call.before / width) <= info.height
  end
  return height(call.row) - hidden + call.below <= info.height
end

return M
