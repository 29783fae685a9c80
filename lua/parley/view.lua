--- Draws what is not text: what waits for a choice, and problems.
--- What there is to draw, and where, is the host's to say.
local M = {}

local api = vim.api
local known = require("parley.known")
local ns = api.nvim_create_namespace("parley.view")
local places = api.nvim_create_namespace("parley.waiting")
local problems = api.nvim_create_namespace("parley")
local H = { drawn = {} }

--- Draw what the host found in the text of `tick`; if that is not the text any more, it will look again.
---@param found { problems: table[], proposals: table[], sightings: integer[], waiting: table, folds: table }
function M.draw(buf, tick, found)
  if not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick then
    return false
  end
  H.drawn[buf] = { tick = tick, found = found }
  H.problems(buf, found.problems)
  api.nvim_buf_clear_namespace(buf, places, 0, -1)
  for _, rows in ipairs(found.waiting) do
    api.nvim_buf_set_extmark(buf, places, rows[1], 0, { end_row = rows[2], strict = false })
  end
  M.redraw(buf)
  require("parley.folds").close(buf, found.folds)
  require("parley.keys").wait(buf, #found.waiting > 0)
  require("parley.seen").look_soon(buf)
  return true
end

--- Draw again what is drawn, for windows of another width.
function M.redraw(buf)
  local drawn = H.drawn[buf]
  if not drawn or not api.nvim_buf_is_loaded(buf) then
    return
  end
  -- Where a proposal stood when it was found, a mark stands since.
  local rows = {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, 0, -1, {})) do
    rows[mark[1]] = mark[2]
  end
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  local width = H.width(buf)
  for i, proposal in ipairs(drawn.found.proposals) do
    local lines = vim.list_slice(proposal.lines)
    if proposal.prompt then
      vim.list_extend(lines, { { { "" } }, proposal.prompt })
    end
    lines = vim.tbl_map(function(chunks)
      return M.fit(chunks, width)
    end, lines)
    local row = drawn.placed and rows[i] or proposal.row
    if row and row < api.nvim_buf_line_count(buf) then -- the text may be shorter by now
      local opts = H.is_high(buf, row, #lines) and H.before(lines, width) or { virt_lines = lines }
      api.nvim_buf_set_extmark(buf, ns, row, 0, vim.tbl_extend("error", opts, { id = i, strict = false }))
    end
  end
  drawn.placed = true
end

--- What is drawn of the calls that wait: where it is, its lines below or cells before that, its number.
---@return { row: integer, below: integer, before: integer, sighting: integer }[]
function M.drawn(buf)
  local drawn = H.drawn[buf]
  if not drawn or not api.nvim_buf_is_loaded(buf) then
    return {}
  end
  return vim.tbl_map(function(mark)
    local sighting, before = drawn.found.sightings[mark[1]], 0
    for _, chunk in ipairs(mark[4].virt_text or {}) do
      before = before + api.nvim_strwidth(chunk[1])
    end
    return { row = mark[2], below = #(mark[4].virt_lines or {}), before = before, sighting = sighting }
  end, api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true }))
end

--- Nothing waits while a turn runs.
function M.clear(buf)
  if H.drawn[buf] then
    H.drawn[buf] = nil
    api.nvim_buf_clear_namespace(buf, ns, 0, -1)
    api.nvim_buf_clear_namespace(buf, places, 0, -1)
    require("parley.keys").wait(buf, false)
  end
end

function M.forget(buf)
  H.drawn[buf] = nil
  require("parley.seen").forget(buf)
end

--- The changedtick of the text that was drawn from.
function M.tick(buf)
  return H.drawn[buf] and H.drawn[buf].tick
end

--- Whether something waits in the exchange that a row is in.
function M.waits_at(buf, row)
  return #api.nvim_buf_get_extmarks(buf, places, { row, 0 }, { row, -1 }, { overlap = true, limit = 1 }) > 0
end

--- Whether an undecided proposal stands on a row.
function M.proposal_at(buf, row)
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  return vim.startswith(line, known.start("proposal"))
end

--- Scroll a window until a row is seen with what is drawn below it, but not so far that the cursor's is not.
function M.reveal(win, cursor_row, row)
  api.nvim_win_call(win, function()
    pcall(vim.cmd, ("silent %d,%dfoldopen!"):format(cursor_row + 1, row + 1)) -- an error where there is none
  end)
  local marks = api.nvim_buf_get_extmarks(
    api.nvim_win_get_buf(win),
    ns,
    { row, 0 },
    { row, 0 },
    { details = true }
  )
  local below = marks[1] and #(marks[1][4].virt_lines or {}) or 0
  local info = vim.fn.getwininfo(win)[1]
  local room = info.height - below -- without a winbar, which nvim_win_get_height counts
  local top = info.topline - 1
  while top < cursor_row and api.nvim_win_text_height(win, { start_row = top, end_row = row }).all > room do
    top = top + 1
  end
  api.nvim_win_call(win, function()
    vim.fn.winrestview({ topline = top + 1 })
  end)
end

local severities = { error = 1, warning = 2, hint = 4 }

function H.problems(buf, found)
  local diagnostics = vim.tbl_map(function(problem)
    return {
      lnum = problem.row,
      col = problem.col,
      severity = severities[problem.severity],
      message = problem.message,
      source = "parley",
    }
  end, found)
  vim.diagnostic.set(problems, buf, diagnostics)
end

--- How wide text can be in the narrowest window that shows the buffer.
function H.width(buf)
  local width = math.huge
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return width
end

--- Whether a line is so high, in a window that shows it, that what is drawn below it may well lie outside.
function H.is_high(buf, row, below)
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    local height = api.nvim_win_text_height(win, { start_row = row, end_row = row, start_vcol = 0 }).all
    return height > 1 and height + below > vim.fn.getwininfo(win)[1].height / 2
  end)
end

--- Lines drawn on the line itself, before its text: each in rows of its own, and wherever its start is seen.
function H.before(lines, width)
  local chunks = {}
  for _, line in ipairs(lines) do
    local used = 0
    for _, chunk in ipairs(line) do
      chunks[#chunks + 1], used = chunk, used + api.nvim_strwidth(chunk[1])
    end
    chunks[#chunks + 1] = { (" "):rep(width - used) }
  end
  return { virt_text = chunks, virt_text_pos = "inline" }
end

local least = 6

--- Chunks cut to a width, with an ellipsis wherever something is missing. Those that may be cut, by their
--- third part, share what room there is, so that a long one hides no other.
--- Cells are counted without a window: in one, a wide character at its last column would count as three.
function M.fit(chunks, width)
  local fixed, lengths = 0, {}
  for i, chunk in ipairs(chunks) do
    local length = api.nvim_strwidth(chunk[1])
    if chunk[3] then
      lengths[i] = length
    else
      fixed = fixed + length
    end
  end
  local share = H.share(vim.tbl_values(lengths), math.max(width - fixed, 0))
  local fitting, used = {}, 0
  for i, chunk in ipairs(chunks) do
    local text = lengths[i] and H.cut(chunk[1], math.max(share, least), chunk[3]) or chunk[1]
    local length = api.nvim_strwidth(text)
    if used + length > width then
      local before = used == width and table.remove(fitting) or { "" }
      local room = width - used + api.nvim_strwidth(before[1])
      fitting[#fitting + 1] = { H.cut(before[1] .. text .. "…", room), before[2] or chunk[2] }
      break
    end
    fitting[#fitting + 1], used = { text, chunk[2] }, used + length
  end
  return fitting
end

--- The most that each of some lengths may have, for all of them to fit into a room.
function H.share(lengths, room)
  table.sort(lengths)
  for i, length in ipairs(lengths) do
    local each = math.floor(room / (#lengths - i + 1))
    if length > each then
      return each
    end
    room = room - length
  end
  return math.huge
end

--- Text within a width, an ellipsis at its end if something is missing, and behind that what ends it.
function H.cut(text, width, ending)
  if api.nvim_strwidth(text) <= width then
    return text
  end
  ending = ending or ""
  width = width - #ending
  local low, high = 0, vim.fn.strchars(text)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if api.nvim_strwidth(vim.fn.strcharpart(text, 0, middle)) < width then
      low = middle
    else
      high = middle - 1
    end
  end
  return width > 0 and vim.fn.strcharpart(text, 0, low) .. "…" .. ending or ""
end

return M
