--- A chat's text objects: a question, an answer, a call with its result, a code block.
---
--- Finds their ends only from markers, which it searches outwards from the cursor.
local M = {}

local api = vim.api
local H = {}

--- For each object, the function that finds it around a row; nil if it is not there.
---@type table<string, fun(row: integer, inner?: boolean): parley.Object?>
M.find = {}

--- The name of each object, by the setting for its letter.
M.described = {
  question_object = "question",
  answer_object = "answer",
  call_object = "tool call",
  code_object = "code block",
}

--- Map the objects in a buffer with `map(mode, lhs, rhs, what, opts)`; the user's own objects with
--- the same keys stay.
---@param letters table<string, any> the letter after `i` and `a`, by setting
function M.map(buf, map, letters)
  for _, mode in ipairs({ "o", "x" }) do
    local taken = {}
    for _, other in
      ipairs(vim.list_extend(api.nvim_buf_get_keymap(buf, mode), api.nvim_get_keymap(mode)))
    do
      taken[other.lhs] = true
    end
    for name, what in pairs(M.described) do
      for around, how in pairs({ i = "inner", a = "whole" }) do
        local lhs = type(letters[name]) == "string"
          and letters[name] ~= ""
          and around .. letters[name]
        map(mode, not taken[lhs] and lhs, function()
          return H.keys(name, around)
        end, ("Parley: %s %s"):format(how, what), { expr = true })
      end
    end
  end
end

--- Select an object; it exists, because `H.keys` has found it.
function M.select(name, around)
  local object = M.find[name](H.cursor(), around == "i")
  if api.nvim_get_mode().mode:match("^[vV\22]") then
    vim.cmd.normal({ "\27", bang = true })
  end
  local stop = object.stop or #H.line(object.last)
  api.nvim_win_set_cursor(0, { object.first + 1, object.col or 0 })
  vim.cmd.normal({ object.col and "v" or "V", bang = true })
  local last = object.col and vim.o.selection == "exclusive" and stop or math.max(stop - 1, 0)
  api.nvim_win_set_cursor(0, { object.last + 1, last })
end

--- The keys that replace an object's keys: they select it or, if there is no object, cancel the
--- operator.
function H.keys(name, around)
  if M.find[name](H.cursor(), around == "i") then
    return ("<Cmd>lua require('parley.objects').select('%s', '%s')<CR>"):format(name, around)
  end
  return api.nvim_get_mode().mode:match("^no") and "<Esc>" or ""
end

---@class parley.Object
---@field first integer its first row
---@field last integer its last row
---@field col? integer its start in the first row, in bytes; nil for whole lines
---@field stop? integer its end in the last row, in bytes; nil for the end of the row

--- The question of the exchange under the cursor.
---@return parley.Object?
function M.find.question_object(row, inner)
  local first = H.up(row, { "question" })
  return first and H.turn(first, H.down(first + 1, { "question", "answer" }), inner)
end

--- The answer under the cursor; in a question, the answer below it.
---@return parley.Object?
function M.find.answer_object(row, inner)
  local first = H.up(row, { "answer", "question" })
  if first and H.is(H.line(first), { "question" }) then
    first = H.down(first + 1, { "answer", "question" })
  end
  if first and first < H.count() and H.is(H.line(first), { "answer" }) then
    return H.turn(first, H.down(first + 1, { "question", "answer" }), inner)
  end
end

--- The call under the cursor, including its result; the inner object is the arguments. Outside
--- answers, there are no calls.
---@return parley.Object?
function M.find.call_object(row, inner)
  local first = H.up(row, H.structure)
  local result = first and H.is(H.line(first), { "result" }) and first
  if result then
    first = H.up(result - 1, H.structure)
  end
  if not first or not H.is(H.line(first), { "proposal" }) then
    return nil
  end
  local turn = H.up(first, { "question", "answer" })
  if not turn or H.is(H.line(turn), { "question" }) then
    return nil
  end
  result = result or H.down(first + 1, H.structure)
  local last = H.is_result_of(result, first) and H.body_end(result) or first
  if row > last then
    return nil
  elseif not inner then
    return { first = first, last = H.blanks_below(last) }
  end
  local col, stop = H.line(first):match("^[^`]*`+()[^`].*[^`]()`+%s*$")
  return col and { first = first, last = first, col = col - 1, stop = stop - 1 } or nil
end

--- Whether a result starts at a row and has the id of the call at another row.
function H.is_result_of(row, call)
  local line = row < H.count() and H.line(row) or ""
  local id = H.is(line, { "result" }) and line:match("^[^:]*:[^%[]*%[[^%]]*%][^%[]*%[([^%]]*)%]")
  return id and H.line(call):find(('"%s"'):format(id), 1, true) ~= nil
end

--- The code block under the cursor; an unclosed block ends above the next marker.
---@return parley.Object?
function M.find.code_object(row, inner)
  local open, fence, stop = nil, "", H.count()
  for at, line in H.rows((H.up(row, H.structure) or -1) + 1, stop) do
    if at > row and (not open or H.is(line, H.structure)) then
      stop = at
      break
    end
    local ticks, more = line:match("^[%s>]*(```+)([^`]*)$")
    if not ticks then
      ticks, more = line:match("^[%s>]*(~~~+)(.*)$")
    end
    if ticks and not open then
      open, fence = at, ticks
    elseif ticks and vim.startswith(ticks, fence) and not more:find("%S") then
      if at >= row then
        return H.lines(inner and open + 1 or open, inner and at - 1 or at)
      end
      open = nil
    end
  end
  return open and H.lines(inner and open + 1 or open, H.blanks_above(stop - 1)) or nil
end

--- An object of whole lines; nil if there are none.
function H.lines(first, last)
  return first <= last and { first = first, last = last } or nil
end

--- A question or answer that starts at a row and ends above another row. The inner object is the
--- text; it starts after the marker if there is text on the marker's line.
function H.turn(first, stop, inner)
  if not inner then
    return H.lines(first, stop - 1)
  end
  local line, last = H.line(first), H.blanks_above(stop - 1)
  local agent = H.is(line, { "answer" }) and line:match("^[^:]*:%s*%[[^%]]*%]%s*()")
  local text = agent or line:match("^[^:]*:%s*()")
  if text <= #line then
    return { first = first, last = last, col = text - 1 }
  end
  for row, below in H.rows(first + 1, stop) do
    if below:find("%S") then
      return H.lines(row, last)
    end
  end
end

--- The last row of a result, whose body is a fenced block or a paragraph.
function H.body_end(head)
  local stop, last, fence = H.down(head + 1, H.structure), head, nil
  for row, line in H.rows(head + 1, stop) do
    local blank = not line:find("%S")
    if fence then
      last = row
      if vim.trim(line) == fence then
        return row
      end
    elseif blank and last > head then
      return last
    elseif not blank then
      fence = last == head and line:match("^(```+)[^`]*$") or nil
      last = row
    end
  end
  return fence and stop - 1 or last
end

H.structure = { "question", "answer", "thinking", "proposal", "result", "note" }

--- Whether a line starts with one of these markers. Thinking counts only with its bracket.
function H.is(line, names)
  local byte = line:byte()
  if byte ~= 240 and byte ~= 226 then
    return false
  end
  local known = require("parley.known")
  return vim.iter(names):any(function(name)
    return known.is(line, name) and (name ~= "thinking" or line:find("^[^:]*:%[") ~= nil)
  end)
end

local piece = 100 -- how many rows to read at once

--- The nearest row at or above a row that has one of these markers; nil if there is none.
---@return integer?
function H.up(row, names)
  while row >= 0 do
    local from = math.max(0, row - piece + 1)
    local lines = api.nvim_buf_get_lines(0, from, row + 1, false)
    for n = #lines, 1, -1 do
      if H.is(lines[n], names) then
        return from + n - 1
      end
    end
    row = from - 1
  end
end

--- The nearest row at or below a row that has one of these markers, else the row after the last.
---@return integer
function H.down(row, names)
  for at, line in H.rows(row, H.count()) do
    if H.is(line, names) then
      return at
    end
  end
  return H.count()
end

--- Iterate over the rows from one up to another with their lines, which are read as needed.
function H.rows(from, to)
  local lines, start, row = {}, from, from - 1
  return function()
    row = row + 1
    if row >= to then
      return nil
    elseif not lines[row - start + 1] then
      start = row
      lines = api.nvim_buf_get_lines(0, row, math.min(to, row + piece), false)
    end
    return row, lines[row - start + 1]
  end
end

--- The nearest row at or above a row that is not blank.
function H.blanks_above(row)
  while row > 0 and not H.line(row):find("%S") do
    row = row - 1
  end
  return row
end

--- The last of the blank rows directly below a row; without blank rows, the row itself.
function H.blanks_below(row)
  while row + 1 < H.count() and not H.line(row + 1):find("%S") do
    row = row + 1
  end
  return row
end

function H.line(row)
  return api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""
end

function H.count()
  return api.nvim_buf_line_count(0)
end

function H.cursor()
  return api.nvim_win_get_cursor(0)[1] - 1
end

return M
