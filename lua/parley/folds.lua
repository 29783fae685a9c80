--- Folds long and rarely read text: a call is one row, with or without its result.
---
--- The host decides which lines to fold, and the text of a closed fold. Folds are created only if
--- 'foldmethod' is "manual", and only once for each place, so folds that the user opens or deletes
--- stay that way. `expr` provides the same folds for 'foldexpr'.
local M = {}

local api = vim.api
local rows_of = require("parley.buffer_rows")
local ns = api.nvim_create_namespace("parley.folds")

-- A fold from the host is an array: a long chat has thousands, in each look at it. `Row` in
-- `nvim/folds.py` has the same order.
local FIRST, AFTER, NUMBER, IS_OPEN, BY, CALL = 1, 2, 3, 4, 5, 6
local H = { texts = {}, folds = {}, levels = {}, left = {}, shaken = {}, later = {} }

local shows = "v:lua.require'parley.folds'.text()"

---@class parley.Fold
---@field number integer the number of its text
---@field call string the id of a call; "" for other folds
---@field by string who approved it, if the user did not type the approval
---@field is_open boolean whether it is open at first
---@field both boolean whether one fold holds a call and its result

--- Store the texts of folds, by number; each is sent once.
function M.learn(buf, texts)
  H.texts[buf] = vim.tbl_extend("force", H.texts[buf] or {}, texts)
end

--- Receive the folds in the lines from `first` to `last`. Creates a window's new folds together.
---@param rows table[] arrays, as above
---@param later? boolean fold a result later, if a cursor that follows the text is in it
function M.put(buf, rows, first, last, later)
  M.repair(buf)
  first, last = rows_of.within(buf, first), rows_of.within(buf, last - 1) + 1
  rows = vim.tbl_filter(function(row) -- skip rows that belong to another text
    return rows_of.has(buf, row[FIRST])
      and rows_of.has(buf, row[AFTER] - 1)
      and row[FIRST] < row[AFTER]
  end, rows)
  local folds, marks, created = H.of(buf), H.marks(buf, first, last), {}
  for _, row in ipairs(rows) do
    local mark = marks[row[FIRST]] or {}
    local id, before = mark[1], folds[mark[1]] or {}
    local is_call = row[CALL] ~= ""
    local fold = { number = row[NUMBER], is_open = row[IS_OPEN], by = row[BY], call = row[CALL] }
    local has_result = is_call and row[AFTER] > row[FIRST] + 1
    local has_cursor = has_result and H.has_cursor(buf, row[FIRST] + 1, row[AFTER])
    fold.both = has_result and not (later and has_cursor)
    local is_longer = id and mark[4].end_row ~= row[AFTER] - 1
    if before.number ~= fold.number or before.both ~= fold.both or is_longer then
      local opts = {
        id = id,
        end_row = row[AFTER] - 1,
        end_col = vim.v.maxcol,
        invalidate = true,
        strict = false,
      }
      id = api.nvim_buf_set_extmark(buf, ns, row[FIRST], 0, opts)
    end
    H.add(created, fold, row[FIRST], row[AFTER], before)
    folds[id], marks[row[FIRST]] = fold, nil
    if has_cursor and not before.both then
      H.later[buf] = vim.tbl_extend("force", H.later[buf] or {}, { [id] = true })
    end
    if is_longer or before.both and not fold.both then
      H.shake(buf, id)
    end
  end
  for row, mark in pairs(marks) do -- the earlier fold of this row is gone
    H.drop(buf, mark[1])
    table.insert(created, { row, is_gone = true })
  end
  H.levels[buf] = nil
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    H.make(win, created)
  end
  M.repair(buf)
end

--- Change part of a line. Neovim deletes the fold of a line if text in it is replaced, so restore
--- the call's row in each window.
function M.within(buf, row, change)
  local before = {}
  row = rows_of.within(buf, row)
  H.each_by_hand(buf, function(win)
    before[win] = { level = vim.fn.foldlevel(row + 1), is_open = vim.fn.foldclosed(row + 1) == -1 }
  end)
  change()
  H.each_by_hand(buf, function(win)
    if vim.fn.foldlevel(row + 1) < before[win].level then
      H.make(win, { { row, row + 1, is_call = true, is_open = before[win].is_open } })
    end
  end)
end

--- Recreate folds that a change has removed or misplaced.
function M.repair(buf)
  local shaken = H.shaken[buf]
  H.shaken[buf] = nil
  for id, was_closed in pairs(shaken or {}) do
    local fold = H.folds[buf][id]
    local mark = fold and H.mark(buf, id)
    if mark then
      local first, last = H.span(fold, mark)
      fold.both = fold.both and last > first
      H.each_by_hand(buf, function(win)
        local base = H.base(buf, first, last)
        if not H.is_intact(buf, fold, first, last, base) then
          H.clear(first, last, base)
          local created = {}
          H.add(created, fold, first - 1, last, {})
          H.make(win, created)
        elseif was_closed == win and vim.fn.foldclosed(first) == -1 then
          vim.cmd(("%dfoldclose"):format(first)) -- an undo opens the cursor's fold
        end
      end)
    end
  end
end

--- Create the missing folds in a window that shows the buffer.
function M.enter(buf)
  local all = {}
  for id, fold in pairs(H.folds[buf] or {}) do
    local mark = H.mark(buf, id)
    if mark then
      H.add(all, fold, mark[1], mark[3].end_row + 1, {})
    else
      H.drop(buf, id)
    end
  end
  local is_stale = H.left[buf] and H.left[buf] ~= api.nvim_buf_get_changedtick(buf)
  H.left[buf] = nil
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if is_stale and vim.wo[win].foldmethod == "manual" then
      -- While a window shows another buffer, Vim keeps its folds here, but does not move them with
      -- the text.
      api.nvim_win_call(win, function()
        vim.cmd("silent! normal! zE")
      end)
    end
    if not H.has_any(win, all) then
      H.make(win, all)
    end
  end
end

--- No window shows the buffer any longer.
function M.leave(buf)
  H.left[buf] = api.nvim_buf_get_changedtick(buf)
end

function M.forget(buf)
  require("parley.running").forget(buf)
  pcall(api.nvim_del_augroup_by_name, "parley.folds." .. buf)
  for _, facts in ipairs({ H.texts, H.folds, H.levels, H.left, H.shaken, H.later }) do
    facts[buf] = nil
  end
end

--- The text of a closed fold, in the window being drawn.
function M.text()
  local win = api.nvim_get_current_win()
  local row, group = H.shown(win, vim.v.foldstart - 1, vim.v.foldend)
  if not row then
    return H.others(win)
  end
  local width, used = H.width(win), 0
  for _, chunk in ipairs(row) do
    used = used + api.nvim_strwidth(chunk[1])
  end
  row[#row + 1] = { (" "):rep(width - used) }
  if group then
    for _, chunk in ipairs(row) do
      chunk[2] = { chunk[2] or "Folded", group }
    end
  end
  return row
end

--- Chunks fitted to the text width of a window.
function M.fit(win, chunks)
  return require("parley.view").fit(chunks, H.width(win))
end

--- Whether a call's row shows the whole call, in a window that folds calls into rows. Nil in other
--- windows, or if another 'foldtext' is set.
---@return boolean?
function M.is_whole(win, row)
  row = rows_of.within(api.nvim_win_get_buf(win), row)
  local chunks = vim.wo[win].foldtext == shows and H.is_row(win, row) and H.shown(win, row, row + 1)
  if chunks then
    return not require("parley.view").is_cut(chunks)
  end
end

--- Whether a buffer has calls.
function M.has_calls(buf)
  return vim.iter(pairs(H.folds[buf] or {})):any(function(_, fold)
    return fold.call ~= ""
  end)
end

--- The mark of the last call with an id, because ids may repeat.
---@return integer?
function M.find(buf, call)
  local found, lowest
  for id, fold in pairs(H.folds[buf] or {}) do
    local row = fold.call == call and M.row(buf, id)
    if row and (not lowest or row > lowest) then
      found, lowest = id, row
    end
  end
  return found
end

--- The row of a mark.
function M.row(buf, id)
  local mark = H.mark(buf, id)
  return mark and mark[1]
end

--- Receive the folds in some lines of the text of `tick`, if the text has not changed.
function M.update(buf, tick, found)
  M.learn(buf, found.texts)
  if api.nvim_buf_is_loaded(buf) and api.nvim_buf_get_changedtick(buf) == tick then
    M.put(buf, found.folds, found.first, found.last, true)
  end
end

--- The mark of the call whose line is at a row.
---@return integer?
function M.id(buf, row)
  if not rows_of.has(buf, row) then
    return nil
  end
  local mark = api.nvim_buf_get_extmarks(buf, ns, { row, 0 }, { row, 0 }, { limit = 1 })[1]
  return mark and mark[1]
end

--- The row above which lines must be drawn to appear below `row`, because Neovim draws nothing
--- above or below folded lines. The second value is whether `row` itself is folded.
---@return integer row, boolean is_folded
function M.below(buf, row)
  local win, count = vim.fn.win_findbuf(buf)[1], api.nvim_buf_line_count(buf)
  row = rows_of.within(buf, row)
  if not win then
    return row + 1, false
  end
  return unpack(api.nvim_win_call(win, function()
    local closed = vim.fn.foldclosedend(row + 1)
    local below = math.max(closed, row + 1)
    while below < count and vim.fn.foldclosedend(below + 1) ~= -1 do
      below = vim.fn.foldclosedend(below + 1)
    end
    return { below, closed ~= -1 }
  end))
end

--- A window's rows, with a closed fold as its first row: `above` rows above the top row, and
--- `count` rows from there.
---@return integer[]
function M.rows(win, above, count)
  return api.nvim_win_call(win, function()
    local top, last, rows = vim.fn.line("w0"), api.nvim_buf_line_count(0), {}
    local line = top
    while #rows < count and line <= last do
      table.insert(rows, line - 1)
      line = math.max(vim.fn.foldclosedend(line), line) + 1
    end
    line = top - 1
    while above > 0 and line >= 1 do
      local first = vim.fn.foldclosed(line)
      line, above = first == -1 and line or first, above - 1
      table.insert(rows, line - 1)
      line = line - 1
    end
    return rows
  end)
end

--- Open the folds that hide a row, except the row's own fold.
function M.uncover(win, row)
  row = rows_of.within(api.nvim_win_get_buf(win), row)
  api.nvim_win_call(win, function()
    local at = vim.fn.foldclosed(row + 1)
    while at ~= -1 and not H.is_row(win, row) do
      vim.cmd(("silent! %dfoldopen"):format(row + 1))
      local now = vim.fn.foldclosed(row + 1)
      if now == at and not H.is_row(win, row) then
        vim.cmd(("silent! %dfoldopen!"):format(row + 1))
      end
      at = vim.fn.foldclosed(row + 1)
    end
  end)
end

--- For 'foldexpr': the fold level of a line, from the latest folds.
function M.expr()
  local buf = api.nvim_get_current_buf()
  H.levels[buf] = H.levels[buf] or H.all_levels(buf)
  return H.levels[buf][vim.v.lnum] or 0
end

--- Add the folds to create for an earlier or a new fold.
function H.add(list, fold, first, last, before)
  local is_call = fold.call ~= ""
  if is_call and not before.number then
    table.insert(list, { first, first + 1, is_call = true })
  end
  if fold.both and not before.both or not is_call and not before.number then
    table.insert(list, { first, last, is_call = is_call, is_open = fold.is_open })
  end
end

--- The first and last line of a fold, by its mark.
function H.span(fold, mark)
  local first, last, col = mark[1] + 1, mark[3].end_row + 1, mark[3].end_col
  if fold.call ~= "" and not fold.both then
    return first, first
  end
  local is_gone = col == 0 and last > first -- its end has moved to the start of the line below
  return first, is_gone and last - 1 or last
end

--- Call `act` in each window with manual folds.
function H.each_by_hand(buf, act)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if vim.wo[win].foldmethod == "manual" then
      api.nvim_win_call(win, function()
        act(win)
      end)
    end
  end
end

--- How many of the user's folds contain these lines in the current window. A user's fold also
--- contains the lines around them.
function H.base(buf, first, last)
  local fold, mark = H.of_line(buf, first - 1)
  while fold do
    first = mark[2] + 1
    fold, mark = H.of_line(buf, first - 1)
  end
  fold, mark = H.of_line(buf, last + 1)
  while fold do
    last = math.max(mark[4].end_row, last) + 1
    fold, mark = H.of_line(buf, last + 1)
  end
  local above = first > 1 and vim.fn.foldlevel(first - 1)
  local below = last < api.nvim_buf_line_count(buf) and vim.fn.foldlevel(last + 1)
  return math.min(above or below or 0, below or above or 0)
end

--- Whether a fold is in its place in the current window.
function H.is_intact(buf, fold, first, last, base)
  local function is_in(line)
    return vim.fn.foldlevel(line) > base
  end
  local function is_grown(line)
    return is_in(line) and not H.of_line(buf, line)
  end
  local depth = fold.call ~= "" and fold.both and 2 or 1
  return vim.fn.foldlevel(first) == base + depth
    and is_in(math.min(first + 1, last))
    and is_in(last)
    and not is_grown(first - 1)
    and not is_grown(last + 1)
end

--- Remove the folds in some lines in the current window, except the user's folds around them.
function H.clear(first, last, base)
  local view = vim.fn.winsaveview()
  for line = first, math.min(last, api.nvim_buf_line_count(0)) do
    for _ = base + 1, vim.fn.foldlevel(line) do
      vim.cmd(("silent! %dfoldopen!"):format(line)) -- otherwise all closed folds would be deleted
      api.nvim_win_set_cursor(0, { line, 0 })
      vim.cmd("silent! normal! zd")
    end
  end
  vim.fn.winrestview(view)
end

--- Whether a window's cursor is in these rows.
function H.has_cursor(buf, first, last)
  return vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
    local row = api.nvim_win_get_cursor(win)[1] - 1
    return first <= row and row < last
  end)
end

function H.of(buf)
  if not H.folds[buf] then
    H.folds[buf] = {}
    H.follow(buf, H.folds[buf])
    api.nvim_create_autocmd("TextChanged", { -- fires before the change is drawn
      group = api.nvim_create_augroup("parley.folds." .. buf, {}),
      buffer = buf,
      callback = function()
        M.repair(buf)
      end,
    })
    api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI" }, {
      group = "parley.folds." .. buf,
      buffer = buf,
      callback = function()
        H.catch_up(buf)
      end,
    })
  end
  return H.folds[buf]
end

--- Fold calls with their results, if the cursor has left these.
function H.catch_up(buf)
  for id in pairs(H.later[buf] or {}) do
    local fold = H.folds[buf][id]
    local mark = fold and H.mark(buf, id)
    if not mark then
      H.later[buf][id] = nil
    elseif not H.has_cursor(buf, mark[1] + 1, mark[3].end_row + 1) then
      H.later[buf][id] = nil
      if fold.both and not fold.is_open then
        H.each_by_hand(buf, function()
          vim.cmd(("silent! %dfoldclose"):format(mark[1] + 1))
        end)
      elseif not fold.both then
        fold.both, H.levels[buf] = true, nil
        local _, last = H.span(fold, mark)
        for _, win in ipairs(vim.fn.win_findbuf(buf)) do
          H.make(win, { { mark[1], last, is_call = true, is_open = fold.is_open } })
        end
      end
    end
  end
end

--- A fold's mark; nil if its lines are gone, although Neovim then keeps the mark below the text.
---@return { [1]: integer, [2]: integer, [3]: table }?
function H.mark(buf, id)
  local mark = api.nvim_buf_get_extmark_by_id(buf, ns, id, { details = true })
  local is_gone = not mark[1]
    or mark[3].invalid
    or mark[1] >= api.nvim_buf_line_count(buf)
    or (mark[3].end_row == mark[1] and mark[3].end_col == mark[2])
  return not is_gone and mark or nil
end

--- The marks in some lines by row; one mark for each row.
function H.marks(buf, first, last)
  local marks = {}
  for _, mark in
    ipairs(api.nvim_buf_get_extmarks(buf, ns, { first, 0 }, { last, 0 }, { details = true }))
  do
    if marks[mark[2]] then
      H.drop(buf, mark[1])
    elseif mark[2] < last then
      marks[mark[2]] = mark
    end
  end
  return marks
end

function H.drop(buf, id)
  H.folds[buf][id] = nil
  require("parley.running").drop(buf, id)
  api.nvim_buf_del_extmark(buf, ns, id)
end

--- Note which folds a change may have damaged. Vim deletes a line's folds with the line. It loses
--- the folds of lines that an undo changes, and of lines next to restored lines. It extends a fold
--- by lines typed above it.
function H.follow(buf, folds)
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, now)
      if H.folds[buf] ~= folds then
        return true
      elseif next(folds) == nil then
        return
      end
      local beside = { now == last and last - 1 or math.max(last, now) + 1, -1 }
      local marks = api.nvim_buf_get_extmarks(
        buf,
        ns,
        { math.max(first - 1, 0), 0 },
        beside,
        { details = true }
      )
      for _, mark in ipairs(marks) do
        if folds[mark[1]] and not H.mark(buf, mark[1]) then
          H.drop(buf, mark[1])
        elseif folds[mark[1]] then
          H.shake(buf, mark[1], mark[2] + 1)
        end
      end
    end,
  })
end

--- Record that a fold may be out of place.
---@param line? integer if the fold is closed here in the current window, close it afterwards
function H.shake(buf, id, line)
  local shaken = H.shaken[buf] or {}
  H.shaken[buf] = shaken
  if not shaken[id] then
    local is_closed = line and api.nvim_get_current_buf() == buf and vim.fn.foldclosed(line) ~= -1
    shaken[id] = is_closed and api.nvim_get_current_win() or 0
  end
end

--- Create folds in a window, inner folds first, and remove folds without lines.
function H.make(win, folds)
  local is_ours = H.has_expr(win)
  if vim.wo[win].foldmethod ~= "manual" and not is_ours then
    return
  end
  H.dress(win)
  if is_ours then
    vim.wo[win][0].foldexpr = vim.wo[win].foldexpr -- this recalculates the folds
  elseif #folds > 0 and vim.wo[win].foldenable then
    api.nvim_win_call(win, function()
      H.fold(folds)
    end)
  end
end

--- Create folds in the current window. No closed fold may cover the cursor, except a call's row.
function H.fold(folds)
  local cursor, open, gone = api.nvim_win_get_cursor(0)[1], {}, {}
  local commands = { "noautocmd setlocal nofoldenable" } -- otherwise closed folds extend the range
  for _, fold in ipairs(folds) do
    local first, last = fold[1] + 1, fold[2]
    if fold.is_gone then
      table.insert(gone, first)
    elseif not H.is_closed(first, last) then
      table.insert(commands, ("%d,%dfold"):format(first, last))
      local is_at = first <= cursor and cursor <= last and not (fold.is_call and cursor == first)
      if fold.is_open or is_at then
        table.insert(open, ("silent! %dfoldopen"):format(first))
      end
    end
  end
  table.insert(commands, "noautocmd setlocal foldenable")
  vim.cmd(table.concat(vim.list_extend(commands, open), "\n"))
  for _, line in ipairs(gone) do
    H.unfold(line)
  end
end

--- Whether a closed fold covers these lines.
function H.is_closed(first, last)
  return vim.fn.foldclosed(first) == first and vim.fn.foldclosedend(first) == last
end

--- Remove the remaining folds at a line, for a call with its result or for other text.
function H.unfold(line)
  line = math.min(line, api.nvim_buf_line_count(0))
  local view = vim.fn.winsaveview()
  api.nvim_win_set_cursor(0, { line, 0 })
  for _ = 1, 2 do
    if vim.fn.foldclosed(line) == line then
      vim.cmd("silent! normal! zd")
    end
  end
  vim.fn.winrestview(view)
end

--- Set up a window for calls as rows: a closed fold may have a single line, and we provide its
--- text.
function H.dress(win)
  local wo = vim.wo[win][0]
  if vim.wo[win].foldtext ~= shows then
    api.nvim_win_set_var(win, "parley_foldtext", H.own(win, "foldtext"))
    wo.foldtext = shows
  end
  wo.foldminlines = 0
end

--- The text of one of the user's own closed folds.
function H.others(win)
  local own = vim.w[win].parley_foldtext
  if own and own ~= "" and own ~= "foldtext()" then
    local ok, text = pcall(api.nvim_eval, own)
    if ok then
      return text
    end
  end
  return vim.fn.foldtext()
end

function H.has_expr(win)
  return vim.wo[win].foldmethod == "expr" and H.own(win, "foldexpr"):find("parley", 1, true) ~= nil
end

local modeline_sid = -1

--- A window's option; "" if a modeline has set it. Vim evaluates such a value in a sandbox, and
--- evaluating or setting it here would leave the sandbox.
function H.own(win, option)
  local sid = api.nvim_get_option_info2(option, { win = win }).last_set_sid
  return sid == modeline_sid and "" or vim.wo[win][option]
end

--- Whether a window has some of our folds: after a split, it has the other window's folds.
function H.has_any(win, all)
  return api.nvim_win_call(win, function()
    return vim.iter(all):any(function(fold)
      return vim.fn.foldlevel(fold[1] + 1) > 0
    end)
  end)
end

--- The fold that starts on a row, else the last fold that contains the row, and its mark.
function H.at(buf, row)
  local folds = H.folds[buf]
  if not folds then
    return nil
  end
  local opts = { details = true, overlap = true }
  local found
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, ns, { row, 0 }, { row, 0 }, opts)) do
    if folds[mark[1]] and (mark[2] == row or row <= mark[4].end_row) then
      found = mark
    end
  end
  return found and folds[found[1]], found
end

--- Our fold that contains a line, if exactly one does.
function H.of_line(buf, line)
  if line < 1 or line > api.nvim_buf_line_count(buf) then
    return nil
  end
  local fold, mark = H.at(buf, line - 1)
  if fold and line - 1 <= mark[4].end_row then
    return fold, mark
  end
end

--- The text of a fold over these rows in a window, including a prompt drawn on it, and the
--- highlight group of the current call; nil if the fold is not ours.
function H.shown(win, first, last)
  local chunks, band = H.chunks(api.nvim_win_get_buf(win), first, last)
  if not chunks then
    return nil
  end
  local current, prompt = require("parley.view").current(win, first)
  if prompt then
    chunks = vim.list_extend({ { prompt[1], prompt[2] } }, chunks)
  end
  return M.fit(win, chunks), current or band
end

--- The text of a fold over these rows; nil if the fold is not ours.
function H.chunks(buf, first, last)
  local fold, mark = H.at(buf, first)
  if not fold or mark[2] ~= first then
    return nil
  end
  local text = H.texts[buf][tostring(fold.number)]
  local is_row = fold.call ~= "" and last == first + 1
  local _, without_blank = H.span(fold, { mark[2], mark[3], mark[4] })
  if not is_row and mark[4].end_row + 1 ~= last and without_blank ~= last then
    return nil
  end
  local chunks = vim.list_slice(text.row)
  if not is_row and text.outcome then
    chunks[1] = text.sign
    table.insert(chunks, text.outcome)
  end
  if fold.by ~= "" then
    table.insert(chunks, { " · " .. fold.by, "ParleyHint" })
  end
  local words, group = require("parley.running").words(buf, mark[1], not is_row)
  if words then
    table.insert(chunks, { " · " .. words, group })
  end
  return chunks, text.band
end

--- The row below a fold that starts on a row and is not a call; nil if there is no such fold.
---@return integer?
function M.after(buf, row)
  local fold, mark = nil, nil
  if rows_of.has(buf, row) then
    fold, mark = H.at(buf, row)
  end
  return fold and fold.call == "" and mark[2] == row and mark[4].end_row + 1 or nil
end

--- The fold level of each folded line.
function H.all_levels(buf)
  local levels = {}
  for id, fold in pairs(H.folds[buf] or {}) do
    local mark = H.mark(buf, id)
    if mark then
      local first, last = mark[1] + 1, mark[3].end_row + 1
      for line = first + 1, last - 1 do
        levels[line] = 1
      end
      if last > first then
        levels[last] = "<1"
      end
      levels[first] = fold.both and ">2" or ">1"
    end
  end
  return levels
end

--- Whether a row alone is a closed fold.
function H.is_row(win, row)
  return api.nvim_win_call(win, function()
    return H.is_closed(row + 1, row + 1)
  end)
end

function H.width(win)
  return api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff
end

return M
