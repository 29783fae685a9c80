--- Windows that commands open: where their modifiers say (|:vertical|, |:tab|), and without a word of Lua's
--- where Vim refuses.
local M = {}

local api = vim.api
local H = { expected = {} }

--- Do something of the user's. What Vim has against it is one line, in its words.
---@return boolean ok
function M.try(act, ...)
  local ok, why = pcall(act, ...)
  if not ok then
    require("parley.host").message(H.reason(tostring(why)), "error")
  end
  return ok
end

--- Open an empty buffer without a name.
---@param mods? table the modifiers of the command, as |nvim_parse_cmd()| has them
function M.new(mods)
  H.open(mods, "enew", "new")
end

--- Go to a buffer, where it is seen if it is.
function M.go(buf, mods)
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 and not H.splits(mods) then
    api.nvim_set_current_win(win)
    return
  end
  local swap = api.nvim_create_autocmd("SwapExists", { callback = H.open_beside_swap })
  local ok, why = pcall(H.open, mods, "buffer", "sbuffer", buf)
  api.nvim_del_autocmd(swap)
  if not ok then
    error(why, 0)
  end
end

--- Remember the modifiers of a command whose page comes later.
---@param page string
function M.expect(page, mods)
  H.expected[page] = mods
end

--- The modifiers of the command that a page came of.
---@return table?
function M.expected(page)
  local mods = H.expected[page]
  H.expected[page] = nil
  return mods
end

--- Make a window for a page: where its command said, or above; in a tab page where there is no room.
---@return boolean is_row whether it is as wide as what it was split from
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

--- Whether a window that is made with these modifiers is as wide as what it is split from.
function M.is_row(mods)
  return not mods.vertical and (mods.tab or -1) == -1
end

--- Open in this window with one command, or in a new one with another: where the modifiers say so, or where
--- this window keeps its buffer.
function H.open(mods, here, apart, buf)
  local args = buf and { tostring(buf) } or nil
  if not H.splits(mods) then
    local ok, why = pcall(vim.cmd, { cmd = here, args = args, mods = mods })
    if ok then
      return
    elseif not tostring(why):find("E37:") and not tostring(why):find("E1513:") then
      error(why, 0)
    end
  end
  vim.cmd({ cmd = apart, args = args, mods = mods })
end

--- Whether modifiers ask for a window of its own.
function H.splits(mods)
  return mods ~= nil
    and (mods.vertical or mods.horizontal or (mods.split or "") ~= "" or (mods.tab or -1) ~= -1)
end

--- A chat with a swap file is opened to read: Vim's own question would fill the screen.
function H.open_beside_swap()
  if vim.v.swapchoice == "" then
    api.nvim_set_vvar("swapchoice", "o")
    local text = "there is a swap file of %s: it is opened read-only, and :recover gets what was not saved"
    require("parley.host").message(text:format(vim.fn.expand("<afile>:~")), "warn")
  end
end

--- What an error says: Vim's own words where it is one of Vim's.
function H.reason(why)
  local own = why:match("E%d+: [^\n]+")
  if own then
    return own
  elseif why:find("Keyboard interrupt", 1, true) then
    return "interrupted"
  end
  return (vim.split(why, "\n")[1]:gsub("^.-%.lua:%d+: ", ""))
end

return M
