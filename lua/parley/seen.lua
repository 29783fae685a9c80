--- Which of the tool calls that wait have been on the screen, with all that is drawn of them: a key decides
--- on those only. What is drawn has a number, which is the host's; one that is drawn otherwise has another.
local M = {}

local api = vim.api
local H = { seen = {} }

--- Take note of what is on the screen now.
---@param buf integer
function M.look(buf)
  for _, call in ipairs(require("parley.view").drawn(buf)) do
    if not H.has(buf, call.sighting) and H.is_on_screen(buf, call) then
      M.mark(buf, call.sighting)
    end
  end
end

--- The same once it is drawn, and fits beside the signs that come with it.
function M.look_soon(buf)
  if #require("parley.view").drawn(buf) == 0 then
    return
  end
  vim.schedule(function()
    if api.nvim_buf_is_loaded(buf) then
      local refit = require("parley.view").refit
      refit(buf)
      vim.cmd.redraw()
      if refit(buf) then -- that brought the column of signs, or took it away
        vim.cmd.redraw()
      end
      M.look(buf)
    end
  end)
end

--- The user was brought to some calls: to the first of them, even if the window is too small for all of it,
--- and to those whose rows are in it.
---@param sightings integer[]
function M.show(buf, win, sightings)
  for i, sighting in ipairs(sightings) do
    local call = vim.iter(require("parley.view").drawn(buf)):find(function(call)
      return call.sighting == sighting
    end)
    if i == 1 or call and H.has_row(win, call.row) then
      M.mark(buf, sighting)
    end
  end
end

--- The user has seen it.
---@param sighting integer
function M.mark(buf, sighting)
  H.seen[buf] = H.seen[buf] or {}
  H.seen[buf][sighting] = true
end

--- The numbers of what has been on the screen, of that which is drawn now.
---@return integer[]
function M.numbers(buf)
  M.look(buf)
  local numbers = {}
  for _, call in ipairs(require("parley.view").drawn(buf)) do
    if H.has(buf, call.sighting) then
      table.insert(numbers, call.sighting)
    end
  end
  return numbers
end

function M.forget(buf)
  H.seen[buf] = nil
end

function H.has(buf, sighting)
  return H.seen[buf] ~= nil and H.seen[buf][sighting] == true
end

function H.is_on_screen(buf, call)
  local here = api.nvim_get_current_tabpage()
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    return api.nvim_win_get_tabpage(win) == here and H.is_in_window(win, call)
  end)
end

--- Whether the row of a call is in a window.
function H.has_row(win, row)
  local info = vim.fn.getwininfo(win)[1]
  return row >= info.topline - 1 and row < info.botline
end

--- Whether all of a call is in a window: its row, or its line with what is drawn below it or before it, and
--- what of it is in the block below the calls.
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
    return false -- what is drawn beside a line ends at the edge of the window, without a mark
  elseif folded then
    return require("parley.folds").is_whole(win, call.row) == true
  elseif call.is_cut then
    return false
  end
  local hidden = math.floor(view.skipcol / width)
  local function height(last)
    return last < top and 0 or api.nvim_win_text_height(win, { start_row = top, end_row = last }).all
  end
  if call.before > 0 then
    local is_at_start = call.row > top or hidden == 0
    return is_at_start and height(call.row - 1) - hidden + math.ceil(call.before / width) <= info.height
  end
  return height(call.row) - hidden + call.below <= info.height
end

return M
