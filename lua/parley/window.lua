--- Opens windows for commands, as their modifiers say (|:vertical|, |:tab|), and without a Lua
--- error if Vim refuses.
local M = {}

local api = vim.api
local H = { expected = {} }

--- Call `act` for the user. If Vim refuses, show the reason on one line.
---@return boolean ok
function M.try(act, ...)
  local ok, why = pcall(act, ...)
  if not ok then
    require("parley.host").message(M.reason(why), "error")
  end
  return ok
end

--- Open an empty unnamed buffer.
---@param mods? table the command's modifiers, as in |nvim_parse_cmd()|
function M.new(mods)
  H.open(mods, "enew", "new")
end

--- Go to a buffer, if possible in a window that shows it.
function M.go(buf, mods)
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 and not M.splits(mods) then
    api.nvim_set_current_win(win)
    return
  end
  H.beside_swap(H.open, mods, "buffer", "sbuffer", buf)
end

--- Load a listed buffer for a file, as |:edit| does, with a relative name for the status line.
---@param path string an absolute path
---@return integer buf
function M.load(path)
  local name = vim.fn.fnamemodify(path, ":.")
  local buf = vim.fn.bufadd(vim.startswith(name, "~") and path or name) -- "~" is a home directory
  vim.bo[buf].buflisted = true
  H.beside_swap(vim.fn.bufload, buf)
  return buf
end

--- Remember the modifiers of a command whose page opens later.
---@param page string
function M.expect(page, mods)
  H.expected[page] = mods
end

--- The modifiers of the command that opened a page.
---@return table?
function M.expected(page)
  local mods = H.expected[page]
  H.expected[page] = nil
  return mods
end

--- Create a window for a page: where the command's modifiers say, else above; in a tab page if
--- there is no room.
---@return boolean is_row whether the window is as wide as the window that it was split from
function M.split(page)
  local mods = M.expected(page) or {}
  if not pcall(vim.cmd.split, { mods = mods }) then
    vim.cmd("tab split")
  end
  if vim.fn.exists("+winfixbuf") == 1 then
    vim.wo.winfixbuf = false
  end
  return M.is_row(mods)
end

--- Whether a window with these modifiers is as wide as the window that it is split from.
function M.is_row(mods)
  return not mods.vertical and (mods.tab or -1) == -1
end

--- Open in this window with one command or, if the modifiers say so or this window must keep its
--- buffer, in a new window with another command.
function H.open(mods, here, apart, buf)
  local args = buf and { tostring(buf) } or nil
  if not M.splits(mods) then
    local ok, why = pcall(vim.cmd, { cmd = here, args = args, mods = mods })
    if ok then
      return
    elseif not tostring(why):find("E37:") and not tostring(why):find("E1513:") then
      error(why, 0)
    end
  end
  vim.cmd({ cmd = apart, args = args, mods = mods })
end

--- Whether modifiers ask for a separate window.
---@return boolean
function M.splits(mods)
  return mods ~= nil
    and (mods.vertical or mods.horizontal or (mods.split or "") ~= "" or (mods.tab or -1) ~= -1)
end

--- Call a function that may read a file with a swap file.
function H.beside_swap(act, ...)
  local swap = api.nvim_create_autocmd("SwapExists", { callback = H.open_beside_swap })
  local ok, why = pcall(act, ...)
  api.nvim_del_autocmd(swap)
  if not ok then
    error(why, 0)
  end
end

--- Open a file that has a swap file read-only, because Vim's own question would fill the screen.
function H.open_beside_swap()
  if vim.v.swapchoice == "" then
    api.nvim_set_vvar("swapchoice", "o")
    local text = "%s has a swap file, so it is opened read-only. :recover restores the unsaved text"
    require("parley.host").message(text:format(vim.fn.expand("<afile>:~")), "warn")
  end
end

--- An error's reason on one line: Vim's message if Vim raised the error.
function M.reason(why)
  why = tostring(why)
  local own = why:match("E%d+: [^\n]+")
  if own then
    return own
  elseif why:find("Keyboard interrupt", 1, true) then
    return "interrupted"
  end
  return (vim.split(why, "\n")[1]:gsub("^.-%.lua:%d+: ", ""))
end

return M
