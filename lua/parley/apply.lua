--- The diff of a code block and its file: loads the file's buffer, and shows both in a tab page. The
--- host decides which file it is, and where the block belongs in it.
local M = {}

local api = vim.api
local H = {}

---@class parley.ApplyFile
---@field problem? string why there is no file to compare; then there are no other fields
---@field buf? integer
---@field tick? integer its changedtick
---@field name? string its displayed name
---@field lines? string[]

--- The lines of a file; without a path, of the file edited before the chat. Loads its buffer.
---@param id integer the handle of the command
---@param path string "" for the file edited before the chat
---@param most integer the maximum number of bytes
---@return parley.ApplyFile
function M.file(id, path, most)
  local handle = require("parley.handle").get(id)
  if not handle then
    return { problem = require("parley.handle").closed }
  end
  if path == "" then
    local buf = require("parley.context").beside(handle.buf)
    if not buf or vim.bo[buf].buftype ~= "" or require("parley.chat").is_attached(buf) then
      return { problem = "the code block names no file, and no file was edited before this chat" }
    end
    vim.fn.bufload(buf)
    return H.content(buf, most)
  end
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size > most then
    return { problem = ("%s is too large to compare"):format(path) }
  end
  return H.content(require("parley.window").load(path), most)
end

function H.content(buf, most)
  local context = require("parley.context")
  if api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf)) > most then
    return { problem = ("%s is too large to compare"):format(context.name(buf)) }
  end
  return {
    buf = buf,
    tick = api.nvim_buf_get_changedtick(buf),
    name = context.name(buf),
    lines = api.nvim_buf_get_lines(buf, 0, -1, true),
  }
end

--- Show the diff, if the file's buffer still has the text of `tick`.
---@param id integer the handle of the command
---@param place { start: integer, end: integer, lines: string[] } rows, from 0, and their new lines
---@param title string
function M.show(id, buf, tick, place, title)
  local handle = require("parley.handle").get(id)
  local host = require("parley.host")
  if not handle or handle.win ~= api.nvim_get_current_win() then
    return -- the user has gone elsewhere
  elseif not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick then
    host.message("the file has just changed: repeat the command", "warn")
    return
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  local after = vim.list_slice(lines, 1, place.start)
  vim.list_extend(after, place.lines)
  vim.list_extend(after, lines, place["end"] + 1)
  local name = require("parley.context").name(buf)
  require("parley.window").try(require("parley.diff_tab").open, {
    path = name,
    after = after,
    live_buf = buf,
    title = title,
    on_close = function()
      M.closed(buf, name)
    end,
  })
end

--- Say that the changes are not written yet.
function M.closed(buf, name)
  if api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified then
    require("parley.host").message(
      ("%s has unsaved changes: use :w there to save them"):format(name)
    )
  end
end

return M
