--- The files that are open in buffers: their texts for the workspace, edits that keep what the user
--- sees, and reloads when calls have changed them on disk.
local M = {}

local api = vim.api
local H = { on_disk = {}, reported = {}, is_waiting = false }

local most_names = 5
local line_ends = { unix = "\n", dos = "\r\n", mac = "\r" }
local diff = vim.text and vim.text.diff or vim.diff -- Neovim 0.12 has moved it

---@class parley.OpenText
---@field text? string as in the file, but in UTF-8 and without a byte order mark
---@field modified? boolean
---@field problem? string why the text cannot be given

--- Remember from now on which state of its file each buffer has.
function M.watch()
  if H.group then
    return
  end
  H.group = api.nvim_create_augroup("parley.open_files", {})
  -- A reload is a BufReadPost; after a FileChangedShellPost, the buffer may still have its old text.
  local events = { "BufReadPost", "BufWritePost", "BufFilePost" }
  api.nvim_create_autocmd(events, {
    group = H.group,
    callback = function(args)
      H.note(args.buf)
    end,
  })
  api.nvim_create_autocmd("BufUnload", {
    group = H.group,
    callback = function(args)
      H.on_disk[args.buf], H.reported[args.buf] = nil, nil
    end,
  })
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if H.is_file(buf) then
      H.note(buf)
    end
  end
end

--- Calls may have changed files: reload the buffers of changed files, and name the buffers that
--- cannot be reloaded in one message. In the command-line window, Neovim reloads nothing, so wait
--- until the user leaves it.
function M.reload()
  if vim.fn.getcmdwintype() ~= "" then
    H.reload_later()
    return
  end
  local unsaved, deleted = {}, {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if H.is_file(buf) and not require("parley.handle").busy(buf) then
      local why = H.renew(buf)
      local names = why == "unsaved" and unsaved or why == "deleted" and deleted
      if names and not vim.deep_equal(H.reported[buf], H.stamp(buf) or {}) then
        H.reported[buf] = H.stamp(buf) or {}
        table.insert(names, buf)
      end
    end
  end
  local parts = {}
  if #unsaved > 0 then
    local text =
      "not reloaded, because of unsaved changes: %s (:e! loads the file, :w! keeps your text)"
    table.insert(parts, text:format(H.names(unsaved)))
  end
  if #deleted > 0 then
    table.insert(parts, "deleted on disk, but still open: " .. H.names(deleted))
  end
  if #parts > 0 then
    require("parley.host").message(table.concat(parts, "; "), "warn")
  end
end

--- Reload a buffer if its file has changed. If the buffer cannot be reloaded, its text differs from
--- the file: return the reason.
---@param buf integer
---@return "unsaved"|"stale"|"deleted"|nil
function M.difference(buf)
  return H.is_file(buf) and not require("parley.handle").busy(buf) and H.renew(buf) or nil
end

--- The text of an open file; nil if no listed buffer has it. If the file has changed on disk, a
--- buffer without unsaved changes is reloaded first.
---@param path string
---@param most integer the maximum number of bytes
---@return parley.OpenText?
function M.text(path, most)
  local buf = M.find(path)
  local difference = buf and H.renew(buf)
  if not buf or difference == "deleted" and not vim.bo[buf].modified then
    return nil
  end
  local size = api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
  if size > most then
    return { problem = "too large to send from Neovim" }
  end
  local text = H.text(buf)
  local is_modified = vim.bo[buf].modified or difference ~= nil
  return text and { text = text, modified = is_modified } or { problem = "it is not text" }
end

--- Change an open file to a new text, if it still has the text that the change was computed for. It
--- is one undo step. Write the file if its buffer had no unsaved changes.
---@param path string
---@param digest string SHA-256 of the text
---@param text string
---@param saves boolean whether the file may be written
---@return { state?: "saved"|"unsaved"|"changed", problem?: string }
function M.apply(path, digest, text, saves)
  local buf = M.find(path)
  if not buf then
    return { state = "changed" }
  end
  local options = vim.bo[buf]
  if not options.modifiable or options.readonly then
    local name = options.readonly and "readonly" or "nomodifiable"
    return { problem = ("Neovim does not change its buffer: '%s' is set there"):format(name) }
  end
  local difference = H.renew(buf)
  local is_deleted = difference == "deleted" and not options.modified
  local before = not is_deleted and H.text(buf)
  if not before or vim.fn.sha256(before) ~= digest then
    return { state = "changed" }
  end
  local lines, has_end = H.lines(text, options.fileformat)
  if not lines then
    return {
      problem = ("its line ends do not all match 'fileformat' %s"):format(options.fileformat),
    }
  end
  local is_clean = not options.modified and not difference -- else `:write` would ask
  local had_end, step = options.endofline, H.step(buf)
  M.end_undo_block(buf)
  M.replace(buf, lines)
  options.endofline = text == "" and had_end or has_end
  local ok, why = true, nil
  if is_clean and saves then
    ok, why = H.write(buf)
  end
  M.end_undo_block(buf) -- after a formatter's changes
  if not ok then
    options.endofline = had_end
    api.nvim_buf_call(buf, function()
      pcall(vim.cmd, "silent undo " .. step)
    end)
    return { problem = "Neovim cannot write it: " .. tostring(why):gsub("^.-E(%d+):", "E%1:") }
  end
  return { state = options.modified and "unsaved" or "saved" }
end

--- A file was moved: its buffer takes the new name. A buffer with unsaved changes keeps them.
---@param path string
---@param target string
function M.move(path, target)
  local buf = M.find(path)
  if not buf then
    return
  end
  local old, is_modified = api.nvim_buf_get_name(buf), vim.bo[buf].modified
  api.nvim_buf_set_name(buf, target)
  for _, other in ipairs(api.nvim_list_bufs()) do
    if
      other ~= buf
      and api.nvim_buf_get_name(other) == old
      and not api.nvim_buf_is_loaded(other)
    then
      api.nvim_buf_delete(other, { force = true })
    end
  end
  if is_modified then
    local text = "%s was moved, and its unsaved changes are only in the buffer. :w! writes them"
    require("parley.host").message(text:format(require("parley.context").name(buf)), "warn")
  elseif not vim.bo[buf].readonly then
    H.write(buf, "noautocmd", "!") -- otherwise `:w` would ask for its `!`
  end
  H.note(buf)
end

--- The listed buffer that has a file; nil if there is none.
---@param path string
---@return integer?
function M.find(path)
  local real = H.real(path)
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return vim.bo[buf].buflisted and H.is_file(buf) and H.real(api.nvim_buf_get_name(buf)) == real
  end)
end

--- A path without links; the file need not exist.
function H.real(path)
  local real = vim.uv.fs_realpath(path)
  if real then
    return real
  end
  local folder = vim.uv.fs_realpath(vim.fs.dirname(path))
  return folder and vim.fs.joinpath(folder, vim.fs.basename(path)) or path
end

--- A buffer's text as in its file, but in UTF-8 and without a byte order mark; nil if it is not
--- text.
function H.text(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  local is_empty = #lines == 1
    and lines[1] == ""
    and api.nvim_buf_call(buf, function()
      return vim.fn.wordcount().bytes == 0
    end)
  local ending = line_ends[vim.bo[buf].fileformat]
  local last = vim.bo[buf].endofline and not is_empty and ending or ""
  local text = table.concat(lines, ending) .. last
  local is_text = not vim.iter(lines):any(function(line)
    return line:find("\n", 1, true) ~= nil -- Neovim's form of a NUL
  end)
  return is_text and text or nil
end

--- A text's lines, and whether the last line has an end; nil if the text does not fit the format.
function H.lines(text, format)
  local ending = line_ends[format]
  local lines = vim.split(text, ending, { plain = true })
  local has_end = #lines > 1 and lines[#lines] == ""
  if has_end or text == "" then
    table.remove(lines)
  end
  local fits = not text:find("\0", 1, true)
    and (
      format == "unix"
      or not vim.iter(lines):any(function(line)
        return line:find("\n", 1, true) ~= nil
      end)
    )
  return fits and lines or nil, has_end
end

--- Change a buffer to these lines by its smallest changes, from the bottom up.
function M.replace(buf, lines)
  local old = api.nvim_buf_get_lines(buf, 0, -1, true)
  local function joined(all)
    return #all > 0 and table.concat(all, "\n") .. "\n" or ""
  end
  local options = { result_type = "indices", linematch = 60 }
  local hunks = diff(joined(old), joined(lines), options) --[[@as integer[][] ]]
  for at = #hunks, 1, -1 do
    local from, count, new_from, new_count = unpack(hunks[at])
    local both = math.min(count, new_count)
    local rest = vim.list_slice(lines, new_from + both, new_from + new_count - 1)
    local row = (count == 0 and from or from - 1) + both
    if count > both then
      api.nvim_buf_set_lines(buf, row, row + count - both, true, {})
    elseif new_count > both then
      vim.fn.appendbufline(buf, row, rest)
    end
    for n = both - 1, 0, -1 do
      H.set_line(buf, from - 1 + n, old[from + n], lines[new_from + n])
    end
  end
end

--- Change the different part of a line. Before Neovim 0.12, `nvim_buf_set_text` removes marks in
--- the line and takes it out of a fold that starts or ends there; `setbufline` keeps both, but moves
--- extmarks, so they are put back.
function H.set_line(buf, row, old, new)
  local from, most = 0, math.min(#old, #new)
  while from < most and old:byte(from + 1) == new:byte(from + 1) do
    from = from + 1
  end
  local tail = 0
  while tail < most - from and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  if vim.fn.has("nvim-0.12") == 1 then
    local part = new:sub(from + 1, #new - tail)
    api.nvim_buf_set_text(buf, row, from, row, #old - tail, { part })
    return
  end
  local function moved(column)
    return column <= from and column
      or column >= #old - tail and column + #new - #old
      or math.min(column, #new - tail)
  end
  local marks = api.nvim_buf_get_extmarks(buf, -1, { row, 0 }, { row, -1 }, { details = true })
  vim.fn.setbufline(buf, row + 1, new)
  for _, mark in ipairs(marks) do
    local id, column, details = mark[1], mark[3], mark[4]
    local namespace = details.ns_id
    details.ns_id, details.invalid, details.id = nil, nil, id
    details.end_col = details.end_row == row and moved(details.end_col) or details.end_col
    pcall(api.nvim_buf_set_extmark, buf, namespace, row, moved(column), details)
  end
end

--- Write a buffer as `:write` does, but add no line end that the text does not have.
---@param before? string a command modifier
---@param bang? string
---@return boolean ok, string? why
function H.write(buf, before, bang)
  local fixes = vim.bo[buf].fixendofline
  vim.bo[buf].fixendofline = false
  local ok, why = pcall(api.nvim_buf_call, buf, function()
    local command = ("lockmarks %s write%s"):format(before or "", bang or "")
    require("parley.messages").silently(command)
  end)
  vim.bo[buf].fixendofline = fixes
  return ok, why
end

--- The number of the buffer's current undo step.
function H.step(buf)
  return api.nvim_eval(("undotree(%d).seq_cur"):format(buf))
end

--- End the current undo step, so that text typed before and after has separate steps.
function M.end_undo_block(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

--- Reload the buffer of a changed file as |:checktime| does with 'autoread', which never asks about
--- a buffer without unsaved changes. Marks that are not set in the buffer's window stay.
---@return "unsaved"|"stale"|"deleted"|nil why the buffer still differs from its file
function H.renew(buf)
  local stat = H.stamp(buf)
  if not stat then
    return H.on_disk[buf] and "deleted" or nil
  elseif vim.bo[buf].modified then
    return H.has_changed(buf, stat) and "unsaved" or nil
  elseif not H.on_disk[buf] and H.writes(buf) == 0 then -- a new file's buffer, and the file is there
    api.nvim_buf_call(buf, function()
      pcall(require("parley.messages").silently, "edit")
    end)
    return nil
  end
  local is_off = not vim.bo[buf].autoread
  local own = is_off
    and api.nvim_buf_call(buf, function()
      return api.nvim_get_option_value("autoread", { scope = "local" })
    end)
  if is_off then
    vim.bo[buf].autoread = true
  end
  pcall(require("parley.messages").silently, "checktime " .. buf, "!")
  if is_off and api.nvim_buf_is_valid(buf) then
    api.nvim_set_option_value("autoread", own, { buf = buf })
  end
  if not H.on_disk[buf] then
    H.note(buf) -- `:noautocmd write` wrote it, as for a new chat
  end
  return H.has_changed(buf, stat) and "stale" or nil -- the user has answered no to |W11|
end

--- Whether another program wrote the file since the buffer was read or written.
function H.has_changed(buf, stat)
  local known = H.on_disk[buf]
  if not known or vim.deep_equal(known.stamp, stat) then
    return false
  elseif known.writes == H.writes(buf) then
    return true
  end
  H.note(buf) -- `:noautocmd write` wrote it
  return false
end

function H.note(buf)
  local stat = H.is_file(buf) and H.stamp(buf)
  H.on_disk[buf] = stat and { stamp = stat, writes = H.writes(buf) } or nil
  H.reported[buf] = nil
end

--- How often Neovim has written the buffer.
function H.writes(buf)
  return api.nvim_eval(("undotree(%d).save_last"):format(buf))
end

--- Whether a buffer has a text that belongs into a file of its name.
function H.is_file(buf)
  if not api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" then
    return false
  end
  local name = api.nvim_buf_get_name(buf)
  return name ~= "" and not name:find("://", 1, true)
end

--- The modification time, size and identity of a buffer's file; nil if there is no file.
function H.stamp(buf)
  local stat = vim.uv.fs_stat(api.nvim_buf_get_name(buf))
  return stat and { stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino }
end

function H.reload_later()
  if H.is_waiting then
    return
  end
  H.is_waiting = true
  api.nvim_create_autocmd("CmdwinLeave", {
    once = true,
    callback = vim.schedule_wrap(function()
      H.is_waiting = false
      M.reload()
    end),
  })
end

--- The displayed names of buffers; of many, the first ones.
function H.names(bufs)
  local names = vim.tbl_map(require("parley.context").name, vim.list_slice(bufs, 1, most_names))
  local more = #bufs > most_names and (" and %d more"):format(#bufs - most_names) or ""
  return table.concat(names, ", ") .. more
end

return M
