--- Lines that a model rewrites: keeps their place, shows the new text as a diff over the lines, and
--- lets the user take or leave it. The question and the answer are in an ordinary chat; the host finds
--- the new text there.
local M = {}

local api = vim.api
local H = {
  ns = api.nvim_create_namespace("parley.rewrite"),
  shown_ns = api.nvim_create_namespace("parley.rewrite.shown"),
  all = {},
  last = 0,
}

local diff = vim.text and vim.text.diff or vim.diff -- Neovim 0.12 has moved it
local gone = "the lines to rewrite are gone, so nothing changes"

---@class parley.Rewrite
---@field id integer
---@field buf integer
---@field range integer extmark: the lines
---@field at_end boolean whether the last line was the buffer's last line
---@field group integer its autocommands
---@field base string[] the lines for which the question, or the shown diff, was made
---@field chat? integer the chat's buffer
---@field question? integer extmark: a line of the question
---@field new? string[] the new lines
---@field visible? string[] the new lines without hidden characters
---@field is_shown boolean

--- Ask a model to rewrite lines of the current buffer, and stay in its window.
---@param instruction string
---@param opts parley.Opening with `lines`
function M.start(instruction, opts)
  local buf, win, chat =
    api.nvim_get_current_buf(), api.nvim_get_current_win(), require("parley.chat")
  if chat.is_attached(buf) then
    error("chats cannot be rewritten. Run :ParleyRewrite in another file", 0)
  elseif vim.bo[buf].buftype ~= "" or not vim.bo[buf].modifiable then
    error("only lines in a modifiable file can be rewritten", 0)
  end
  local first, last = opts.lines[1], opts.lines[2]
  for _, other in pairs(H.all) do
    local from, to = H.rows(other)
    if other.buf == buf and from and from < last and to >= first then
      H.drop(other)
    end
  end
  local one = H.new(buf, first, last)
  local mods, there = opts.mods, chat.last()
  if (not there or vim.fn.bufwinid(there) == -1) and not require("parley.window").splits(mods) then
    mods = vim.tbl_extend("force", mods or {}, { split = "belowright" })
  end
  local ok, why = pcall(chat.open, "", instruction, {
    lines = opts.lines,
    mods = mods,
    rewrite = one.id,
  }, there)
  if api.nvim_win_is_valid(win) then
    api.nvim_set_current_win(win)
  end
  if not ok then
    H.drop(one)
    error(why, 0)
  end
end

--- The question is in the chat, down to a row.
function M.asked(id, chat, row)
  local one = H.all[id]
  if one then
    one.chat, one.question = chat, api.nvim_buf_set_extmark(chat, H.ns, row, 0, {})
    api.nvim_create_autocmd("BufUnload", {
      group = one.group,
      buffer = chat,
      callback = function()
        if not one.is_shown then
          H.drop(one)
        end
      end,
    })
  end
end

--- A turn in a chat has ended: have the host look for the new lines.
function M.answered(chat)
  for _, one in pairs(H.all) do
    local at = one.chat == chat
      and api.nvim_buf_is_loaded(chat)
      and api.nvim_buf_get_extmark_by_id(chat, H.ns, one.question, {})
    if at and at[1] then
      local name = api.nvim_buf_get_name(chat)
      require("parley.host").mention(
        "rewritten",
        { buf = chat, name = name, row = at[1], rewrite = one.id, old = one.base }
      )
    end
  end
end

--- The host has found the new lines, or the reason why there are none.
---@param id integer
---@param reply { state: string, problem?: string, lines?: string[], visible?: string[] }
function M.receive(id, reply)
  local one = H.all[id]
  if not one then
    return
  elseif reply.problem then
    H.drop(one)
    H.message(reply.problem, "warn")
  elseif reply.state ~= "complete" then
    local words = reply.state == "waiting" and "a tool call is waiting in the chat"
      or "not answered yet. To continue, run :ParleyRespond in the chat"
    H.mark(one, words)
  elseif not (one.is_shown and vim.deep_equal(one.new, reply.lines)) then
    one.new, one.visible = reply.lines, reply.visible
    H.receive(one)
  end
end

function H.receive(one)
  local now = H.lines(one)
  if now and vim.deep_equal(now, one.new) then
    H.drop(one)
    H.message("the model leaves these lines unchanged")
    return
  end
  local has_changed = now and not vim.deep_equal(now, one.base)
  if H.show(one) and (has_changed or #vim.fn.win_findbuf(one.buf) == 0) then
    local first = H.rows(one) + 1
    local text = has_changed and "the lines at %s:%d have changed since the question: see the diff"
      or "the new lines at %s:%d are ready"
    H.message(text:format(require("parley.context").name(one.buf), first))
  end
end

function H.new(buf, first, last)
  H.last = H.last + 1
  local lines = api.nvim_buf_get_lines(buf, first - 1, last, true)
  local at_end = last == api.nvim_buf_line_count(buf)
  local one = { id = H.last, buf = buf, base = lines, at_end = at_end, is_shown = false }
  one.range = api.nvim_buf_set_extmark(buf, H.ns, first - 1, 0, H.range(one, last))
  one.group = api.nvim_create_augroup("parley.rewrite." .. one.id, {})
  H.all[one.id] = one
  H.mark(one, "the model is rewriting these lines")
  api.nvim_create_autocmd("BufUnload", {
    group = one.group,
    buffer = buf,
    callback = function()
      H.drop(one)
    end,
  })
  api.nvim_create_autocmd({ "TextChanged", "InsertLeave" }, {
    group = one.group,
    buffer = buf,
    callback = function()
      if not H.rows(one) then
        H.drop(one)
        H.message(gone, "warn")
      end
    end,
  })
  return one
end

--- The options of a mark for lines down to `last`. It ends at the start of the line below, if there
--- is one, so that a line added there stays outside.
function H.range(one, last)
  local row = one.at_end and last - 1 or last
  local line = api.nvim_buf_get_lines(one.buf, row, row + 1, true)[1]
  return {
    id = one.range,
    end_row = row,
    end_col = one.at_end and #line or 0,
    end_right_gravity = one.at_end,
    invalidate = true,
  }
end

--- The first row of a rewrite's lines, and the row after the last one; nil if they are gone.
---@return integer? first, integer? stop
function H.rows(one)
  if not api.nvim_buf_is_loaded(one.buf) then
    return nil
  end
  local at = api.nvim_buf_get_extmark_by_id(one.buf, H.ns, one.range, { details = true })
  if not at[1] or at[3].invalid then
    return nil
  end
  local stop = at[3].end_row + (one.at_end and 1 or 0)
  if stop <= at[1] then
    return nil
  end
  return at[1], stop
end

function H.lines(one)
  local first, stop = H.rows(one)
  return first and api.nvim_buf_get_lines(one.buf, first, stop, true) or nil
end

--- Say above the lines what a rewrite waits for.
function H.mark(one, words)
  local first, stop = H.rows(one)
  if first then
    require("parley.highlight").set_links()
    local opts = H.range(one, stop)
    opts.virt_text = words and { { "parley: " .. words, "ParleyHint" } }
    api.nvim_buf_set_extmark(one.buf, H.ns, first, 0, opts)
  end
end

--- Forget a rewrite, and remove everything that shows it.
function H.drop(one)
  if not H.all[one.id] then
    return
  end
  H.all[one.id] = nil
  api.nvim_del_augroup_by_id(one.group)
  if api.nvim_buf_is_loaded(one.buf) then
    api.nvim_buf_del_extmark(one.buf, H.ns, one.range)
    H.draw(one.buf)
  end
  if one.question and api.nvim_buf_is_loaded(one.chat) then
    api.nvim_buf_del_extmark(one.chat, H.ns, one.question)
  end
end

--- Show the difference between the present and the new lines.
---@return boolean shown
function H.show(one)
  one.base = H.lines(one)
  if not one.base then
    H.drop(one)
    H.message(gone, "warn")
    return false
  end
  one.is_shown = true
  H.mark(one, nil)
  H.draw(one.buf)
  return true
end

--- Draw all shown rewrites of a buffer, and map their keys while there are any.
function H.draw(buf)
  api.nvim_buf_clear_namespace(buf, H.shown_ns, 0, -1)
  local is_any = false
  for _, one in pairs(H.all) do
    if one.buf == buf and one.is_shown then
      is_any = true
      H.draw_one(one)
    end
  end
  local keys = require("parley.keys")
  keys.decide(buf, is_any and {
    here = function()
      return H.here() ~= nil
    end,
    act = { ya = H.take, yn = H.leave, K = H.compare },
    what = {
      ya = "take the new lines",
      yn = "leave the lines as they are",
      K = "compare the lines in a tab page",
    },
  } or nil)
end

--- Highlight the lines that go, and draw the new lines below them.
function H.draw_one(one)
  local first, stop = H.rows(one)
  if not first then
    return
  end
  local below = {}
  local function add(row, line)
    below[row] = below[row] or {}
    table.insert(below[row], line)
  end
  for _, hunk in ipairs(H.hunks(one.base, one.new, first == 0)) do
    local from, count, new_from, new_count = unpack(hunk)
    local row = first + (count > 0 and from - 1 or from)
    for at = row, row + count - 1 do
      api.nvim_buf_set_extmark(one.buf, H.shown_ns, at, 0, {
        end_row = at + 1,
        hl_group = "ParleyRewriteOld",
        hl_eol = true,
        strict = false,
      })
    end
    for n = new_from, new_from + new_count - 1 do
      for _, part in ipairs(H.parts(one, n)) do
        add(row + count - 1, { { part, "ParleyRewriteNew" } })
      end
    end
  end
  local function key(choice)
    return vim.fn.strtrans(require("parley.keys").decision(choice))
  end
  local hint = "%s take · %s leave · K diff tab"
  hint = hint:format(key("ya"), key("yn"))
  add(stop - 1, { { hint, "ParleyHint" } })
  for row, lines in pairs(below) do
    api.nvim_buf_set_extmark(one.buf, H.shown_ns, row, 0, { virt_lines = lines })
  end
end

--- The differences of two lists of lines. At the top of a buffer, Neovim draws no line above the
--- first one, so lines that are added there are drawn as a change of this line.
function H.hunks(old, new, is_top)
  local function joined(lines)
    return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
  end
  local hunks = diff(joined(old), joined(new), { result_type = "indices" }) --[[@as integer[][] ]]
  local one = hunks[1]
  if is_top and one and one[1] == 0 and one[2] == 0 then
    hunks[1] = { 1, 1, one[3], one[4] + 1 }
  end
  return hunks
end

--- A new line, as it is displayed: with spaces for tabs, in rows that fit the window.
function H.parts(one, number)
  local win = vim.fn.win_findbuf(one.buf)[1]
  local info = win and vim.fn.getwininfo(win)[1]
  local width = math.max(20, info and info.width - info.textoff or 80)
  local tab, parts, part, column, used = vim.bo[one.buf].tabstop, {}, {}, 0, 0
  for _, char in ipairs(vim.fn.split(one.visible[number], "\\zs")) do
    char = char == "\t" and (" "):rep(tab - column % tab) or char
    local cells = api.nvim_strwidth(char)
    if used + cells > width then
      table.insert(parts, table.concat(part))
      part, used = {}, 0
    end
    table.insert(part, char)
    column, used = column + cells, used + cells
  end
  table.insert(parts, #part > 0 and table.concat(part) or " ")
  return parts
end

--- The shown rewrite whose lines contain the cursor.
function H.here()
  local buf, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  for _, one in pairs(H.all) do
    if one.buf == buf and one.is_shown then
      local first, stop = H.rows(one)
      if first and row >= first and row < stop then
        return one
      end
    end
  end
end

--- Whether the lines are still those of the shown diff; otherwise show a new diff.
function H.is_current(one)
  if vim.deep_equal(H.lines(one), one.base) then
    return true
  elseif H.show(one) then
    H.message("the lines have changed, and this is the new diff: decide again", "warn")
  end
  return false
end

function H.take()
  local one = H.here()
  if one and H.is_current(one) then
    H.apply(one, H.whole(one))
  end
end

function H.leave()
  H.drop(H.here())
end

--- Show the whole file before and after in a tab page, in which the new text can be edited.
function H.compare()
  local one = H.here()
  if not one or not H.is_current(one) then
    return
  end
  local tick, buf = api.nvim_buf_get_changedtick(one.buf), one.buf
  require("parley.diff_tab").open({
    path = require("parley.context").name(buf),
    before = api.nvim_buf_get_lines(buf, 0, -1, true),
    after = H.whole(one),
    filetype = vim.bo[buf].filetype,
    title = "rewritten",
    accept = "take",
    decline = "leave",
    on_accept = function(_, _, lines)
      if not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick then
        H.message("the file has changed since, so nothing was taken: decide again", "warn")
      else
        H.apply(one, lines)
      end
    end,
    on_decline = function()
      H.drop(one)
    end,
  })
end

--- The lines of the whole buffer with the new lines.
function H.whole(one)
  local first, stop = H.rows(one)
  local lines = api.nvim_buf_get_lines(one.buf, 0, first, true)
  vim.list_extend(lines, one.new)
  return vim.list_extend(lines, api.nvim_buf_get_lines(one.buf, stop, -1, true))
end

--- Change the buffer to these lines, in an undo step of its own.
function H.apply(one, lines)
  local files = require("parley.open_files")
  H.drop(one)
  files.end_undo_block(one.buf)
  files.replace(one.buf, lines)
  files.end_undo_block(one.buf)
end

function H.message(text, level)
  require("parley.host").message(text, level or "info")
end

return M
