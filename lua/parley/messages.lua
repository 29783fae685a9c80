--- Shows messages without a "Press ENTER" prompt, because a prompt would keep the editor from
--- receiving the stream.
local M = {}

local H = { most = 6, patience_ms = 10000, queue = {} }

---@param text string shown as a single line
---@param level integer one of vim.log.levels
function M.show(text, level)
  text = vim.trim(text:gsub("%s+", " ")):gsub("%c", H.escape)
  local message = { text, level }
  if
    vim.tbl_contains(H.queue, function(waiting)
      return vim.deep_equal(waiting, message)
    end, { predicate = true })
  then
    return -- several parts of Parley report the same failure
  end
  table.insert(H.queue, message)
  -- Later, because an error message inside a command would make the command fail; and together.
  if #H.queue == 1 then
    vim.schedule(H.flush)
  end
end

--- Escape a control character: a NUL would split a message, and make Neovim wait for a key.
function H.escape(control)
  return ("\\x%02x"):format(control:byte())
end

function H.flush()
  local queue = H.queue
  H.queue = {}
  if H.is_plain() then
    return H.echo(queue)
  end
  for number, message in ipairs(queue) do
    if not pcall(vim.notify, message[1], message[2]) then -- another plugin's `notify` is broken
      return H.echo(vim.list_slice(queue, number))
    end
  end
end

--- Whether messages go to the command line, and not to a plugin or a UI.
function H.is_plain()
  local uis = vim.api.nvim_list_uis()
  return require("parley.plugins").is_builtin(vim.notify) and #uis > 0 and not uis[1].ext_messages
end

--- Show messages in the command line, and make it high enough until the user continues. If a text
--- is still too long, it is cut on the screen, but complete in `:messages`.
function H.echo(messages)
  local most = math.max(1, vim.o.lines - 4)
  local whole = vim.tbl_map(function(message)
    return { H.cut(message[1], most), message[2] }
  end, messages)
  local lines = H.fitting(whole, most)
  for _, message in ipairs(whole) do
    H.say({ message }, true)
  end
  if #lines > 1 or not vim.deep_equal(lines, whole) then
    H.say(lines, false)
  end
end

--- The messages that fit into a number of rows. The longest messages are cut; if there are too
--- many, the last ones are only counted.
function H.fitting(messages, most)
  local latest = vim.list_slice(messages, 1, #messages > most and most - 1 or #messages)
  local left = #messages - #latest
  if left > 0 then
    table.insert(latest, { ("%d more: see :messages"):format(left), vim.log.levels.WARN })
  end
  for each = H.most, 1, -1 do
    local cut = vim.tbl_map(function(message)
      return { H.cut(message[1], each), message[2] }
    end, latest)
    if each == 1 or H.rows(cut) <= most then
      return cut
    end
  end
end

--- How many rows messages take, one below the other. The end of the last row is reserved for
--- 'showcmd' and 'ruler', and in Insert mode, a whole row for the mode.
function H.rows(messages)
  local rows, columns = H.shows_mode() and 1 or 0, vim.o.columns
  for number, message in ipairs(messages) do
    local column = 0
    rows = rows + 1
    for _, character in ipairs(vim.fn.split(message[1], "\\zs")) do
      local width = vim.api.nvim_strwidth(character)
      if column + width > columns then -- a wide character is not split across two rows
        rows, column = rows + 1, 0
      end
      column = column + width
    end
    local is_last = number == #messages and not H.shows_mode()
    -- After a full row, a line end adds an empty row.
    rows = rows + ((is_last and column + H.reserved() > columns or column == columns) and 1 or 0)
  end
  return rows
end

--- Whether Neovim shows the mode, such as `-- INSERT --`, over the last row.
function H.shows_mode()
  return vim.o.showmode and not vim.api.nvim_get_mode().mode:find("^[nc]")
end

function H.reserved()
  return vim.o.columns - vim.v.echospace
end

--- A text cut to a number of rows.
function H.cut(text, rows)
  local room = rows * vim.o.columns - H.reserved() - 1
  if vim.api.nvim_strwidth(text) <= room then
    return text
  end
  local short = vim.fn.strcharpart(text, 0, room)
  while vim.api.nvim_strwidth(short) > room - 1 do
    short = vim.fn.strcharpart(short, 0, vim.fn.strchars(short) - 1)
  end
  return short .. "…"
end

--- Make the command line this many rows high, but never lower than the user has set it.
function H.make_room(rows)
  local own = H.height or vim.o.cmdheight
  if rows > own and not H.height then
    H.borrow(own)
  end
  if math.max(rows, own) ~= vim.o.cmdheight then
    vim.o.cmdheight = math.max(rows, own)
  end
end

H.highlights = { [vim.log.levels.WARN] = "WarningMsg", [vim.log.levels.ERROR] = "ErrorMsg" }

--- Echo messages one below the other, as one message.
function H.say(messages, history)
  local chunks = {}
  for number, message in ipairs(messages) do
    table.insert(
      chunks,
      { (number > 1 and "\n" or "") .. message[1], H.highlights[message[2]] or "" }
    )
  end
  H.make_room(H.rows(messages))
  vim.cmd.redraw() -- removes earlier messages
  vim.api.nvim_echo(chunks, history, {})
  H.is_shown = true
end

--- Remove the last message when the user starts something new; otherwise it would stay on the
--- screen.
function M.clear()
  if H.is_shown and H.is_plain() and vim.api.nvim_get_mode().mode == "n" then
    if H.restore then
      H.restore()
    end
    M.wipe()
  end
  H.is_shown = false
end

--- Remove the text in the command line. Without a command line, an empty message would wait for a
--- key.
function M.wipe()
  if vim.o.cmdheight > 0 then
    vim.api.nvim_echo({ { "" } }, false, {})
  else
    vim.cmd.redraw()
  end
end

--- Run a command without its messages. Without a command line, Neovim clears the last status line.
---@param bang? string "!" also ignores errors
function M.silently(command, bang)
  local ok, why = pcall(vim.cmd, ("silent%s %s"):format(bang or "", command))
  if vim.o.cmdheight == 0 then
    vim.schedule(function()
      vim.cmd("redrawstatus!")
    end)
  end
  if not ok then
    error(why, 0)
  end
end

--- Restore the command line's height when the user acts, or after a while.
function H.borrow(height)
  H.height = height
  local group = vim.api.nvim_create_augroup("parley.messages", {})
  local function restore()
    if H.restore == restore then
      H.restore, H.height = nil, nil
      vim.api.nvim_del_augroup_by_id(group)
      vim.o.cmdheight = height
    end
  end
  H.restore = restore
  -- Ignore a cursor that moves along with an answer; only the user's keys end this, except for text
  -- that the user types.
  vim.defer_fn(function()
    if H.restore == restore then
      local events = { "CmdlineEnter", "InsertEnter", "InsertLeave", "WinEnter", "BufEnter" }
      vim.api.nvim_create_autocmd(events, {
        group = group,
        callback = vim.schedule_wrap(restore),
      })
      vim.on_key(function(_, typed)
        if typed and typed ~= "" and not vim.api.nvim_get_mode().mode:find("^[iR]") then
          vim.on_key(nil, H.keys)
          vim.schedule(restore)
        end
      end, H.keys)
    end
  end, 300)
  vim.defer_fn(restore, H.patience_ms)
end

H.keys = vim.api.nvim_create_namespace("parley.messages")

return M
