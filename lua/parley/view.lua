--- Draws text that is not in the file: for waiting calls and for problems. The host determines the
--- text and its place.
local M = {}

local api = vim.api
local folds = require("parley.folds")
local known = require("parley.known")
local rows = require("parley.buffer_rows")
local ns = api.nvim_create_namespace("parley.view")
local block_ns = api.nvim_create_namespace("parley.block")
local current_ns = api.nvim_create_namespace("parley.current")
local places = api.nvim_create_namespace("parley.waiting")
local problems = api.nvim_create_namespace("parley")
local H = { drawn = {} }

--- Draw the host's findings about the text of `tick`; if the text has changed, the host will read
--- it again.
---@param found table<string, table> problems, proposals, sightings, waiting, folds, texts
function M.draw(buf, tick, found)
  folds.learn(buf, found.texts)
  if not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick then
    return false
  end
  H.drawn[buf] = { tick = tick, found = found, shown = {}, blocks = {}, above = {}, buf = buf }
  H.place(buf, found.proposals)
  H.problems(buf, found.problems)
  api.nvim_buf_clear_namespace(buf, places, 0, -1)
  for _, place in ipairs(found.waiting) do
    local opts = { end_row = rows.within(buf, place.stop - 1) + 1, strict = false }
    api.nvim_buf_set_extmark(buf, places, rows.within(buf, place.start), 0, opts)
  end
  folds.put(buf, found.folds, 0, api.nvim_buf_line_count(buf))
  for _, call in ipairs(found.proposals) do
    require("parley.running").reopen(buf, folds.id(buf, call.row))
  end
  M.redraw(buf)
  H.listen(buf, #found.proposals > 0)
  require("parley.keys").wait(buf, #found.waiting > 0)
  require("parley.keys").calls(buf, #found.waiting > 0 or folds.has_calls(buf))
  require("parley.sightings").look_soon(buf)
  return true
end

--- Redraw after a change of window sizes: the calls in or near the windows. Other calls are drawn
--- when a window reaches them, so a chat with thousands of calls costs no more than a chat that
--- fills a window.
---
--- A waiting call is a row: its folded line. Text without room in a row is drawn in a block below
--- all calls in the answer, because Neovim draws nothing between two folded lines. If the call's
--- line is not folded, the row is drawn below the line.
function M.redraw(buf)
  local drawn = H.drawn[buf]
  if not drawn or not api.nvim_buf_is_loaded(buf) then
    return
  end
  for number in pairs(drawn.shown) do
    local row = H.row(buf, number)
    if row then
      api.nvim_buf_set_extmark(buf, ns, row, 0, { id = number, strict = false })
    end
  end
  api.nvim_buf_clear_namespace(buf, block_ns, 0, -1)
  local width = H.width(buf)
  if drawn.width ~= width then
    drawn.current = nil -- its block may be higher now: scroll to it again
  end
  drawn.shown, drawn.blocks, drawn.above, drawn.width = {}, {}, {}, width
  H.extend(buf)
  H.follow(buf)
end

--- Mark the rows of the waiting calls, because rows move with the text; connect calls of one
--- answer.
function H.place(buf, proposals)
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  local calls = {}
  for number, call in ipairs(proposals) do
    call.number, call.answer = number, calls
    table.insert(calls, call)
    api.nvim_buf_set_extmark(
      buf,
      ns,
      rows.within(buf, call.row),
      0,
      { id = number, strict = false }
    )
    if call.prompt then
      calls = {}
    end
  end
end

--- A waiting call's row, by the call's number; nil if the text ends above it.
---@return integer?
function H.row(buf, number)
  local row = api.nvim_buf_get_extmark_by_id(buf, ns, number, {})[1]
  return row and row < api.nvim_buf_line_count(buf) and row or nil
end

--- The waiting calls on a row.
---@return table[]
function H.calls_at(buf, row)
  local drawn = H.drawn[buf]
  return vim.tbl_map(function(mark)
    return drawn.found.proposals[mark[1]]
  end, drawn and api.nvim_buf_get_extmarks(buf, ns, { row, 0 }, { row, -1 }, {}) or {})
end

--- Draw all undrawn calls in the windows, and within a window's height of them.
function H.extend(buf)
  local drawn = H.drawn[buf]
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local height, has_more = api.nvim_win_get_height(win), false
    for _, row in ipairs(folds.rows(win, height, 2 * height)) do
      for _, call in ipairs(H.calls_at(buf, row)) do
        if not drawn.shown[call.number] then
          drawn.shown[call.number], has_more = true, true
          H.call(buf, call, row)
        end
      end
    end
    if has_more then
      api.nvim_win_call(win, function() -- or the cursor would stay below the lines drawn above it
        vim.fn.winrestview(vim.fn.winsaveview())
      end)
    end
  end
end

--- Redraw if a window's width has changed without an event, because of a number or sign column.
---@return boolean whether the width has changed
function M.refit(buf)
  local is_other = H.drawn[buf] ~= nil and H.drawn[buf].width ~= H.width(buf)
  if is_other then
    M.redraw(buf)
  end
  return is_other
end

--- The drawn parts of the waiting calls.
---@class parley.Drawn
---@field row integer
---@field sighting integer the call's number
---@field below integer how many lines are drawn below its line, or
---@field before integer how many cells before the line's text, if it is not folded
---@field is_cut boolean whether a part of the row is cut
---@field is_whole boolean whether the call is complete in the block
---@field is_spelled boolean whether the block repeats the whole row, because the row is cut
---@field width integer the line width in cells for which it was drawn
---@field block? { row: integer, count: integer, over: integer } the call's block, if any

--- The waiting calls in a window, as drawn.
---@return parley.Drawn[]
function M.drawn(win)
  local buf, calls = api.nvim_win_get_buf(win), {}
  local drawn = H.drawn[buf]
  for _, row in ipairs(drawn and folds.rows(win, 0, api.nvim_win_get_height(win)) or {}) do
    local details = { details = true }
    for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, { row, 0 }, { row, -1 }, details)) do
      if drawn.shown[mark[1]] then
        table.insert(calls, H.description(buf, drawn, mark))
      end
    end
  end
  return calls
end

--- The numbers of all calls that are drawn, or will be when a window reaches them.
---@return integer[]
function M.sightings(buf)
  return H.drawn[buf] and H.drawn[buf].found.sightings or {}
end

---@return parley.Drawn
function H.description(buf, drawn, mark)
  local call, before = drawn.found.proposals[mark[1]], 0
  for _, chunk in ipairs(mark[4].virt_text or {}) do
    before = before + api.nvim_strwidth(chunk[1])
  end
  return {
    row = mark[2],
    below = #(mark[4].virt_lines or {}),
    before = before,
    sighting = drawn.found.sightings[mark[1]],
    is_whole = call.is_whole,
    is_spelled = call.is_spelled,
    width = drawn.width,
    is_cut = M.is_cut(mark[4].virt_text or vim.iter(mark[4].virt_lines or {}):flatten(1):totable()),
    block = call.needs_block and H.block(buf, call) or nil,
  }
end

--- Whether the whole block above a row is in a window.
function M.has_block(win, block)
  local info = vim.fn.getwininfo(win)[1]
  local view = api.nvim_win_call(win, vim.fn.winsaveview)
  local top, count = info.topline - 1, H.lines_of(win, block)
  if block.row < top or block.row > info.botline then
    return false
  elseif block.row == top then
    return view.topfill >= count
  end
  local hidden = math.floor(view.skipcol / math.max(info.width - info.textoff, 1))
  local above = api.nvim_win_text_height(win, { start_row = top, end_row = block.row - 1 }).all
  return above - hidden + count <= info.height
end

--- How to mark a waiting call's row in a window with its cursor on it; and the prompt, if it is not
--- yet on the screen.
---@return string? group, table? chunk
function M.current(win, row)
  local drawn = H.drawn[api.nvim_win_get_buf(win)]
  local is_there = drawn and drawn.current and H.row(drawn.buf, drawn.current.number) == row
  if is_there and api.nvim_win_get_cursor(win)[1] == row + 1 then
    return "ParleyCurrent", drawn.outside
  end
end

--- Whether chunks were cut. Only Parley writes an ellipsis: text from strangers has it escaped.
function M.is_cut(chunks)
  return vim.iter(chunks):any(function(chunk)
    return chunk[1]:find("…", 1, true) ~= nil
  end)
end

--- Remove the drawn calls, because none waits while a turn runs.
function M.clear(buf)
  if H.drawn[buf] then
    H.drawn[buf] = nil
    for _, namespace in ipairs({ ns, block_ns, current_ns, places }) do
      api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
    require("parley.sightings").look(buf)
    H.listen(buf, false)
    require("parley.keys").wait(buf, false)
    require("parley.keys").calls(buf, folds.has_calls(buf))
  end
end

function M.forget(buf)
  H.drawn[buf] = nil
  H.listen(buf, false)
  folds.forget(buf)
  require("parley.sightings").forget(buf)
  require("parley.pictures").forget(buf)
end

--- The changedtick of the drawn text.
function M.tick(buf)
  return H.drawn[buf] and H.drawn[buf].tick
end

--- Whether a call waits in the exchange that contains a row.
function M.waits_at(buf, row)
  local opts = { overlap = true, limit = 1 }
  return rows.has(buf, row)
    and #api.nvim_buf_get_extmarks(buf, places, { row, 0 }, { row, -1 }, opts) > 0
end

--- Whether a row has a proposal on which the user decides.
function M.proposal_at(buf, row)
  local line = rows.line(buf, row)
  local mark = line:match("^[^:]*:%s*%[(%a+)%]")
  return vim.startswith(line, known.start("proposal"))
    and not vim.list_contains(known.runners, mark)
end

--- Whether a row has a call, or the header of its result.
function M.call_at(buf, row)
  local line = rows.line(buf, row)
  return known.is(line, "result") or vim.startswith(line, known.start("proposal"))
end

--- Scroll a window until it shows the calls from one row to another and the lines drawn below them,
--- but keep the cursor's row visible. If the calls are higher than the window, it shows only a
--- part.
function M.reveal(win, cursor_row, row)
  local buf, last = api.nvim_win_get_buf(win), nil
  cursor_row, row = rows.within(buf, cursor_row), rows.within(buf, row)
  local opts = { limit = api.nvim_win_get_height(win) }
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, { cursor_row, 0 }, { row, -1 }, opts)) do
    folds.uncover(win, mark[2])
    last = H.drawn[buf].found.proposals[mark[1]]
  end
  M.redraw(buf)
  H.scroll(win, cursor_row, last and H.block(buf, last) or { row = row + 1, count = 0, over = 0 })
  H.extend(buf)
  H.follow(buf)
end

--- Scroll a window until it shows a block, but keep a row visible.
function H.scroll(win, row, block)
  local info = vim.fn.getwininfo(win)[1]
  local room = info.height - H.lines_of(win, block) -- without a winbar, which nvim_win_get_height counts
  local top = math.min(H.top(win, info.topline - 1, block.row, room), row)
  if top > info.topline - 1 then
    api.nvim_win_call(win, function() -- `skipcol` belongs to the former first line
      vim.fn.winrestview({ topline = top + 1, skipcol = 0 })
    end)
  end
end

--- The highest row, not above `top`, that is at most `room` screen lines above a row.
function H.top(win, top, row, room)
  return api.nvim_win_call(win, function()
    while row > top do
      local first = vim.fn.foldclosed(row)
      first = first == -1 and row - 1 or first - 1
      room = room - api.nvim_win_text_height(win, { start_row = first, end_row = row - 1 }).all
      if room < 0 then
        break
      end
      row = first
    end
    return row
  end)
end

--- Draw a waiting call on a row, and its answer's block.
function H.call(buf, call, row)
  local drawn, calls = H.drawn[buf], call.answer
  local lines, block = H.text(drawn, call), H.lay(buf, calls)
  local is_last = call == calls[#calls]
  local high = H.is_high(buf, row, #lines + #block)
  local whole = is_last and high and vim.list_extend(vim.list_slice(lines), block) or lines
  local opts = high and H.before(whole, drawn.width) or { virt_lines = lines }
  opts = vim.tbl_extend("error", opts, { id = call.number, strict = false })
  api.nvim_buf_set_extmark(buf, ns, row, 0, opts)
  call.needs_block = is_last and not high or call.is_spelled or #call.blocks + #call.notes > 0
end

--- A call's lines if its row is not folded. For the current call, they end with the prompt, if the
--- prompt is drawn elsewhere.
function H.text(drawn, call)
  local lines = vim.tbl_map(function(chunks)
    return M.fit(H.unsigned(chunks), drawn.width)
  end, call.lines)
  if drawn.outside and drawn.current == call then
    vim.list_extend(lines, H.last(call).prompt)
  end
  return lines
end

--- The last waiting call in the same answer.
function H.last(call)
  return call.answer[#call.answer]
end

--- Lay out the block below an answer's calls; the block is drawn with the first call.
function H.lay(buf, calls)
  local drawn = H.drawn[buf]
  local block = drawn.blocks[calls]
  if not block then
    block = H.compose(buf, calls, drawn.width)
    drawn.blocks[calls] = block
    local row, above = H.above_block(buf, calls, #block)
    if row then
      drawn.above[calls] = above
      local opts = { virt_lines = block, virt_lines_above = true, strict = false }
      opts.id = calls[#calls].number
      api.nvim_buf_set_extmark(buf, block_ns, folds.below(buf, row), 0, opts)
    end
  end
  return block
end

--- The row and the number of the call above a block: the last call, unless its line is so high that
--- the block is drawn before the line's text.
function H.above_block(buf, calls, count)
  for i = #calls, 1, -1 do
    local row = H.row(buf, calls[i].number)
    local has_block = row
      and i == #calls
      and not H.is_folded(buf, row)
      and H.is_high(buf, row, #H.text(H.drawn[buf], calls[i]) + count)
    if row and not has_block then
      return row, calls[i].number
    end
  end
end

--- Whether a fold has been closed over a block, or opened above it, since the block was drawn.
function H.is_displaced(buf)
  return vim.iter(pairs(H.drawn[buf].above)):any(function(calls, above)
    local row = H.row(buf, above)
    local mark = api.nvim_buf_get_extmark_by_id(buf, block_ns, calls[#calls].number, {})
    return row and mark[1] and mark[1] ~= (folds.below(buf, row))
  end)
end

--- The block below some calls: their notes, complete rows if rows are cut, the lines of long
--- arguments, which share the room, and the prompt. A block is never higher than a window.
function H.compose(buf, calls, width)
  local height, prompt = H.height(buf), calls[#calls].prompt
  local room = math.max(height - #calls - #prompt - 5, math.floor(height / 2))
  local parts, left = {}, 0
  for _, add in ipairs({ H.add_notes, H.add_spelled, H.add_arguments }) do
    local after, rest = add(parts, calls, room, width)
    room, left = after, left + rest
  end
  local block = { { { "" } } }
  for i in ipairs(calls) do
    for _, line in ipairs(parts[i]) do
      block[#block + 1] = M.fit(line, width)
      calls[i].is_whole = calls[i].is_whole and not M.is_cut(block[#block])
    end
  end
  if left > 0 then
    block[#block + 1] = M.fit({ { ("  +%d more, K"):format(left), "ParleyHint" } }, width)
  end
  if #block > 1 then
    block[#block + 1] = { { "" } }
  end
  for _, line in ipairs(prompt) do
    block[#block + 1] = M.fit(line, width)
  end
  return block
end

--- Add the calls' notes while there is room.
---@return integer room, integer left the remaining room, and the number of omitted notes
function H.add_notes(parts, calls, room, width)
  local left = 0
  for i, call in ipairs(calls) do
    call.is_whole, call.is_spelled, parts[i] = true, false, {}
    for _, note in ipairs(call.notes) do
      if room > 0 then
        local lines = H.wrap(note, width)
        vim.list_extend(parts[i], lines)
        room = room - #lines
      else
        call.is_whole, left = false, left + 1
      end
    end
  end
  return room, left
end

--- Add complete rows for cut rows, in the room that remains after one row for each argument.
function H.add_spelled(parts, calls, room, width)
  local free = room
  for _, call in ipairs(#calls <= room and calls or {}) do
    free = free - #call.blocks
  end
  for i, call in ipairs(#calls <= room and calls or {}) do
    local chunks = vim.list_slice(call.lines[1], 2)
    if M.is_cut(M.fit(call.lines[1], width)) and not M.is_cut(chunks) then
      table.insert(chunks, 1, { #calls > 1 and ("  call %d: "):format(i) or "  ", "ParleyHint" })
      local lines = H.spell(chunks, width)
      if #lines <= free then
        vim.list_extend(parts[i], lines)
        call.is_spelled, room, free = true, room - #lines, free - #lines
      end
    end
  end
  return room, 0
end

--- Add the lines of long arguments, which share the room.
function H.add_arguments(parts, calls, room, width)
  local lengths, most, left = {}, math.max(room, 1), 0
  for _, call in ipairs(calls) do
    for _, one in ipairs(call.blocks) do
      if #lengths < most then
        table.insert(lengths, one.count + 1)
      else
        call.is_whole, left = false, left + 1
      end
    end
  end
  local share, taken = H.share(lengths, math.max(room, 0)), 0
  for i, call in ipairs(calls) do
    for _, one in ipairs(call.blocks) do
      taken = taken + 1
      if taken <= most then
        local lines, is_whole = H.lines(one, share, width)
        vim.list_extend(parts[i], lines)
        call.is_whole = call.is_whole and is_whole
      end
    end
  end
  return room, left
end

local most_rows = 4

--- A note as rows, broken between words, and cut if it is too long.
function H.wrap(note, width)
  local lines, used = { { note[1] } }, api.nvim_strwidth(note[1][1])
  local text, group = note[2][1], note[2][2]
  for space, word in text:gmatch("(%s*)(%S+)") do
    local length = api.nvim_strwidth(space .. word)
    if used + length > width and #lines < most_rows then
      space, used, length = "    ", 0, 4 + api.nvim_strwidth(word)
      lines[#lines + 1] = {}
    end
    table.insert(lines[#lines], { space .. word, group })
    used = used + length
  end
  return lines
end

--- Chunks on as many rows as they need; rows after the first are indented.
function H.spell(chunks, width)
  local lines, used = { {} }, 0
  for _, chunk in ipairs(chunks) do
    local text = chunk[1]
    while text ~= "" do
      local part = H.start(text, width - used)
      if part == "" and used > 4 then -- there may be room in the next row
        lines[#lines + 1], used = { { "    " } }, 4
      else
        part = part == "" and vim.fn.strcharpart(text, 0, 1) or part
        table.insert(lines[#lines], { part, chunk[2] })
        used, text = used + api.nvim_strwidth(part), text:sub(#part + 1)
      end
    end
  end
  return lines
end

--- A long argument in a number of rows: its lines, else the whole argument as one string, else its
--- first and last lines and the number of lines between them.
---@return table[] lines, boolean is_whole
function H.lines(one, room, width)
  if one.core and room <= one.count then
    one = vim.tbl_extend("force", one, one.core)
  end
  local ends = vim.list_extend(vim.list_slice(one.head), one.tail)
  local function gap(shown)
    return { ("+%d lines, K"):format(one.count - shown), "ParleyHint" }
  end
  if room > one.count and #ends == one.count then
    return vim.list_extend({ one.title }, ends), true
  end
  local brief = vim.list_slice(one.title)
  vim.list_extend(brief, one.brief and { { " " }, one.brief } or {})
  local spelled = one.brief and not M.is_cut(brief) and H.spell(brief, width) or {}
  if 0 < #spelled and #spelled <= math.max(room, 1) then
    return spelled, true
  elseif room < 4 then
    return { vim.list_extend(brief, { { " " }, gap(0) }) }, false
  end
  local first = math.min(math.ceil((room - 2) / 2), #one.head)
  local last = math.min(room - 2 - first, #ends - first)
  local lines = vim.list_extend({ one.title }, vim.list_slice(ends, 1, first))
  table.insert(lines, { { "  ⋮ ", "ParleyHint" }, gap(first + last) })
  return vim.list_extend(lines, vim.list_slice(ends, #ends - last + 1)), false
end

--- A call's block: the row below it, its lines, and the lines of the calls right above it.
function H.block(buf, call)
  local opts = { details = true }
  local mark = api.nvim_buf_get_extmark_by_id(buf, block_ns, H.last(call).number, opts)
  if not mark[1] then
    return nil
  end
  local over = 0
  for _, each in
    ipairs(api.nvim_buf_get_extmarks(buf, ns, { mark[1] - 1, 0 }, { mark[1] - 1, -1 }, opts))
  do
    over = over + #(each[4].virt_lines or {})
  end
  return { row = mark[1], count = #mark[3].virt_lines, over = over }
end

--- How many lines a block takes in a window. Text drawn below a folded line does not appear there.
function H.lines_of(win, block)
  local folded = api.nvim_win_call(win, function()
    return vim.fn.foldclosed(block.row) ~= -1
  end)
  return block.count + (folded and 0 or block.over)
end

--- Mark the call under the cursor, scroll to its prompt, and check whether the prompt is visible.
function H.follow(buf)
  local drawn, win = H.drawn[buf], api.nvim_get_current_win()
  if not drawn or api.nvim_win_get_buf(win) ~= buf then
    return
  end
  local row = api.nvim_win_get_cursor(win)[1] - 1
  local current = H.calls_at(buf, row)[1]
  local block = current and H.block(buf, current)
  if block and current ~= drawn.current and not M.has_block(win, block) then
    H.scroll(win, row, block)
  end
  local outside
  if block and not M.has_block(win, block) then
    outside = H.last(current).prompt[1][1]
  end
  local is_other = drawn.outside ~= outside
  drawn.current, drawn.outside = current, outside
  api.nvim_buf_clear_namespace(buf, current_ns, 0, -1)
  if current then
    local opts = { line_hl_group = "ParleyCurrent", strict = false }
    api.nvim_buf_set_extmark(buf, current_ns, row, 0, opts)
  end
  if is_other then
    M.redraw(buf)
  end
end

--- Follow the cursor while a call waits.
function H.listen(buf, waits)
  local name = "parley.view." .. buf
  if not waits then
    pcall(api.nvim_del_augroup_by_name, name)
    return
  end
  -- No event reports a fold, so use SafeState, which fires at each key.
  api.nvim_create_autocmd({ "CursorMoved", "WinScrolled", "WinEnter", "SafeState" }, {
    group = api.nvim_create_augroup(name, {}),
    buffer = buf,
    callback = function()
      if H.drawn[buf] and H.is_displaced(buf) then
        M.redraw(buf)
      elseif H.drawn[buf] then
        H.extend(buf)
        H.follow(buf)
      end
    end,
  })
end

--- A row without its sign, for use below a line that begins with the sign.
function H.unsigned(chunks)
  local lines = vim.list_slice(chunks)
  lines[1] = { "  ", lines[1][2] }
  return lines
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

--- The text width of the narrowest window that shows the buffer.
function H.width(buf)
  local width = math.huge
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return width
end

--- The height of the lowest window that shows the buffer.
function H.height(buf)
  local height = math.huge
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    height = math.min(height, vim.fn.getwininfo(win)[1].height)
  end
  return height
end

--- Whether a line is folded in a window that shows it.
function H.is_folded(buf, row)
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    return api.nvim_win_call(win, function()
      return vim.fn.foldclosed(row + 1) ~= -1
    end)
  end)
end

--- Whether a line is so high in a window that text drawn below it may be outside the window.
function H.is_high(buf, row, below)
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    local height =
      api.nvim_win_text_height(win, { start_row = row, end_row = row, start_vcol = 0 }).all
    return height > 1 and height + below > vim.fn.getwininfo(win)[1].height / 2
  end)
end

--- Lines drawn inside the line, before its text: each in separate rows, and visible whenever the
--- line's start is.
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

--- Chunks cut to a width, with an ellipsis at each cut. Sizes are left out first. Chunks with a
--- third part may be cut; they share the room, so a long chunk does not displace others. A path has
--- room for its last name. Count cells without a window, because in a window, a wide character in
--- the last column would count as three.
function M.fit(chunks, width)
  local fixed, lengths = 0, {}
  chunks = H.without_sizes(chunks, width)
  for i, chunk in ipairs(chunks) do
    local length = api.nvim_strwidth(chunk[1])
    if chunk[3] then
      lengths[i] = length
    else
      fixed = fixed + length
    end
  end
  local share = H.share(vim.tbl_values(lengths), math.max(width - fixed, 0))
  local names, others = {}, vim.deepcopy(lengths)
  for i, chunk in ipairs(chunks) do
    local needed = chunk[4] == "tail" and H.name_cells(chunk[1], width) or 0
    if needed > math.max(share, least) then
      names[i], others[i], fixed = needed, nil, fixed + needed
    end
  end
  if next(names) then
    share = H.share(vim.tbl_values(others), math.max(width - fixed, 0))
  end
  local fitting, used = {}, 0
  for i, chunk in ipairs(chunks) do
    local cut = chunk[4] == "tail" and H.cut_start or H.cut
    local most = names[i] or math.max(share, least)
    local text = lengths[i] and cut(chunk[1], most, chunk[3]) or chunk[1]
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

--- The cells for a path that is cut to its last name: at most half of the width.
function H.name_cells(path, width)
  local name = path:match("[/\\]?[^/\\]*$")
  local needed = 2 + api.nvim_strwidth(name)
  return math.min(needed, api.nvim_strwidth(path), math.max(math.floor(width / 2), least))
end

--- The chunks without those sizes that do not fit; the last sizes are left out first.
function H.without_sizes(chunks, width)
  local used, kept = 0, vim.list_slice(chunks)
  for _, chunk in ipairs(chunks) do
    used = used + api.nvim_strwidth(chunk[1])
  end
  for i = #chunks, 1, -1 do
    if chunks[i][4] == "size" then
      local text = used > width and chunks[i][3] or chunks[i][1]
      used = used - api.nvim_strwidth(chunks[i][1]) + api.nvim_strwidth(text)
      kept[i] = { text, chunks[i][2] }
    end
  end
  return kept
end

--- The highest limit for each length that lets all lengths fit into the room.
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

--- Text cut to a width; if it is cut, an ellipsis and the ending follow. The ellipsis is there even
--- if there is no room, so a cut is always visible.
function H.cut(text, width, ending)
  if api.nvim_strwidth(text) <= width then
    return text
  end
  ending = ending or ""
  return H.start(text, width - #ending - 1) .. "…" .. ending
end

--- Text cut to a width: the first character, an ellipsis if it is cut, and the end.
function H.cut_start(text, width)
  local count = vim.fn.strchars(text)
  if api.nvim_strwidth(text) <= width then
    return text
  end
  local first = vim.fn.strcharpart(text, 0, 1)
  local low, high = 1, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    if api.nvim_strwidth(first .. "…" .. vim.fn.strcharpart(text, middle)) <= width then
      high = middle
    else
      low = middle + 1
    end
  end
  return first .. "…" .. vim.fn.strcharpart(text, low)
end

--- As much of a text's beginning as fits.
function H.start(text, room)
  local low, high = 0, vim.fn.strchars(text)
  if api.nvim_strwidth(text) <= room then
    return text
  end
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if api.nvim_strwidth(vim.fn.strcharpart(text, 0, middle)) <= room then
      low = middle
    else
      high = middle - 1
    end
  end
  return vim.fn.strcharpart(text, 0, low)
end

return M
