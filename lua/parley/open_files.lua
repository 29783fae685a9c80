--- The files that are open in buffers, next to their files on disk. A call may have changed a file:
--- its buffer is reloaded, but never if it has unsaved changes.
local M = {}

local api = vim.api
local H = { on_disk = {}, reported = {}, is_waiting = false }

local most_names = 5

--- Remember from now on which state of its file each buffer has.
function M.watch()
  if H.group then
    return
  end
  H.group = api.nvim_create_augroup("parley.open_files", {})
  local events = { "BufReadPost", "BufWritePost", "FileChangedShellPost", "BufFilePost" }
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
      if why and not vim.deep_equal(H.reported[buf], H.stamp(buf) or {}) then
        H.reported[buf] = H.stamp(buf) or {}
        table.insert(why == "deleted" and deleted or unsaved, buf)
      end
    end
  end
  local parts = {}
  if #unsaved > 0 then
    local text =
      "not reloaded, because of unsaved changes: %s (:e! loads the file, :w! keeps yours)"
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
---@return "unsaved"|"deleted"|nil
function M.difference(buf)
  return H.is_file(buf) and H.renew(buf) or nil
end

--- Reload the buffer of a changed file as |:checktime| does with 'autoread', which never asks about
--- a buffer without unsaved changes. Marks that are not set in the buffer's window stay.
---@return "unsaved"|"deleted"|nil why the buffer still differs from its file
function H.renew(buf)
  local stat = H.stamp(buf)
  if not stat then
    return H.on_disk[buf] and "deleted" or nil
  elseif vim.bo[buf].modified then
    return H.has_changed(buf, stat) and "unsaved" or nil
  end
  local is_off = not vim.bo[buf].autoread
  local own = is_off
    and api.nvim_buf_call(buf, function()
      return api.nvim_get_option_value("autoread", { scope = "local" })
    end)
  if is_off then
    vim.bo[buf].autoread = true
  end
  pcall(vim.cmd, "silent! checktime " .. buf)
  if is_off and api.nvim_buf_is_valid(buf) then
    api.nvim_set_option_value("autoread", own, { buf = buf })
  end
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
