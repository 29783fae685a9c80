--- A tab page with a file on the left and a proposed text for it on the right, as a diff that the
--- user can change. Decides nothing and writes nothing: it passes the text on the right to a
--- function.
local M = {}

local api = vim.api
local H = { tabs = {} }

---@class parley.Diff
---@field path string the file's displayed path
---@field before? string|string[] the file's text, or its lines; nil for a new file. Not needed with
---`live_buf`
---@field after string|string[] the proposed text, or its lines
---@field filetype? string by default, from the path and the proposal
---@field title? string describes the proposal; by default "proposed"
---@field before_title? string describes the file; by default "now"
---@field base? string with `live_buf`: the text that both others come from, in the middle; the
---proposal cannot be changed then
---@field base_title? string
---@field live_buf? integer the file's buffer: the left side is this buffer, so that |do| and |dp|
---change it
---@field on_accept? fun(text: string, is_edited: boolean, lines: string[]) the user takes the text on
---the right, possibly after changes
---@field on_decline? fun() the user declines the proposal
---@field on_close? fun() the tab page was closed without either
---@field accept? string what the key to take the text does; by default "take this text"
---@field decline? string what the key to decline does; by default "decline"

---@class parley.DiffTab
---@field close fun() close the tab page, if it is still open, without calling a function
---@field left integer the window of the file
---@field right integer the window of the proposal

--- Open a diff in a new tab page. The tab page closes with either of its windows; then the cursor
--- is again in the window where it was.
---@param opts parley.Diff
---@return parley.DiffTab
function M.open(opts)
  local tab = { opts = opts, back = H.window(), live = opts.live_buf }
  if tab.live then
    H.close_others(tab.live)
  end
  tab.after = H.content(opts.after)
  vim.cmd("tab split")
  if vim.fn.exists("+winfixbuf") == 1 then
    vim.wo.winfixbuf = false
  end
  tab.page, tab.left = api.nvim_get_current_tabpage(), api.nvim_get_current_win()
  tab.id = api.nvim_create_augroup("parley.diff_tab." .. tab.left, {})
  H.tabs[tab.id] = tab
  local filetype = opts.filetype or H.filetype(opts)
  if not tab.live then
    local title = opts.before_title or "now"
    tab.before = H.scratch(title, tab, H.content(opts.before or "").lines, filetype)
    vim.bo[tab.before].modifiable = false
  end
  api.nvim_win_set_buf(tab.left, tab.live or tab.before)
  if opts.base then
    tab.base = H.scratch(opts.base_title or "base", tab, H.content(opts.base).lines, filetype)
    vim.bo[tab.base].modifiable = false
    tab.middle = H.split(tab.base)
  end
  tab.proposal = H.scratch(opts.title or "proposed", tab, tab.after.lines, filetype)
  vim.bo[tab.proposal].modifiable = not opts.base -- else |dp| would not know which buffer to change
  tab.right = H.split(tab.proposal)
  local wins = H.windows(tab)
  for _, win in ipairs(wins) do
    api.nvim_win_call(win, function()
      vim.cmd.diffthis()
    end)
  end
  H.hint(tab)
  H.map(tab)
  H.watch(tab)
  for _, win in ipairs(wins) do
    api.nvim_win_call(win, H.go_to_first_change)
  end
  api.nvim_set_current_win(tab.live and tab.left or tab.right)
  return {
    left = tab.left,
    right = tab.right,
    close = function()
      tab.is_decided = true
      H.close(tab)
    end,
  }
end

--- Show a buffer in a new window on the right.
function H.split(buf)
  vim.cmd("rightbelow vertical split")
  local win = api.nvim_get_current_win()
  api.nvim_win_set_buf(win, buf)
  return win
end

--- The windows, from left to right.
function H.windows(tab)
  return tab.middle and { tab.left, tab.middle, tab.right } or { tab.left, tab.right }
end

--- The scratch buffers.
function H.buffers(tab)
  return vim.tbl_values({ tab.proposal, before = tab.before, base = tab.base })
end

--- A text as lines, with its form: `joined` makes the same text from the same lines.
---@param text string|string[]
function H.content(text)
  if type(text) == "table" then
    return { lines = #text > 0 and text or { "" }, ending = "\n", is_ended = #text > 0 }
  end
  local _, all = text:gsub("\n", "")
  local _, crlf = text:gsub("\r\n", "")
  local ending = all > 0 and crlf == all and "\r\n" or "\n"
  local lines = vim.split(text, ending, { plain = true })
  local is_ended = #lines > 1 and lines[#lines] == ""
  if is_ended then
    table.remove(lines)
  end
  return { lines = lines, ending = ending, is_ended = is_ended or text == "", text = text }
end

--- The text of changed lines, with the line ends of the content before.
function H.joined(content, lines)
  local text = table.concat(lines, content.ending)
  local is_empty = #lines == 1 and lines[1] == ""
  return text .. (content.is_ended and not is_empty and content.ending or "")
end

--- Create a scratch buffer whose text cannot be undone. Its name, which the status line shows, says
--- what the text is.
function H.scratch(title, tab, lines, filetype)
  local buf = api.nvim_create_buf(false, true)
  local name = ("%s (%s)"):format(tab.opts.path, title)
  if not pcall(api.nvim_buf_set_name, buf, name) then -- another diff of this file is open
    api.nvim_buf_set_name(buf, ("%s %d"):format(name, buf))
  end
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].undolevels = -1
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].undolevels = -123456 -- the global value again
  vim.bo[buf].modeline, vim.bo[buf].modified = false, false
  if filetype ~= "" then
    vim.bo[buf].filetype = filetype
  end
  return buf
end

function H.filetype(opts)
  if opts.live_buf then
    return vim.bo[opts.live_buf].filetype
  end
  local contents = H.content(opts.after).lines
  local ok, found = pcall(vim.filetype.match, { filename = opts.path, contents = contents })
  return ok and found or ""
end

--- The window to return to; from a float, the window below it.
function H.window()
  local win = api.nvim_get_current_win()
  local config = api.nvim_win_get_config(win)
  if config.relative == "" then
    return win
  elseif config.relative == "win" and api.nvim_win_is_valid(config.win) then
    return config.win
  end
  local other = vim.fn.win_getid(vim.fn.winnr("#"))
  return other ~= 0 and other or win
end

--- Show the keys above each window.
function H.hint(tab)
  local opts, keys = tab.opts, require("parley.keys")
  local function bar(win, title, hints)
    local parts = { "%#ParleyPageHeading# %<" .. H.plain(title) .. " %*" }
    for _, hint in ipairs(hints) do
      table.insert(parts, (" %%#ParleyPageKey#%s%%* %s"):format(H.plain(hint[1]), H.plain(hint[2])))
    end
    vim.wo[win][0].winbar = table.concat(parts, " ")
  end
  require("parley.highlight").set_links()
  -- With three buffers, |do| needs the number of a buffer.
  local left = tab.base and { { tab.proposal .. "do", "take" }, { "]c", "next" } }
    or tab.live and { { "do", "take" }, { "]c", "next" }, { "u", "undo" } }
    or opts.on_accept and { { "dp", "put back" }, { "]c", "next" }, { "q", "close" } }
    or { { "]c", "next" }, { "q", "close" } }
  local right = tab.live and { { "dp", "take" }, { "q", "close" } } or {}
  if opts.on_accept then
    table.insert(right, { keys.decision("ya"), opts.accept or "take this text" })
  end
  if opts.on_decline then
    table.insert(right, { keys.decision("yn"), opts.decline or "decline" })
  end
  bar(tab.left, opts.before_title or "now", left)
  bar(tab.right, opts.title or "proposed", right)
  if tab.middle then
    bar(tab.middle, opts.base_title or "base", { { "dp", "take" } })
  end
end

--- Text for a 'winbar', in which nothing is invisible or has a meaning.
function H.plain(text)
  return (vim.fn.strtrans(text):gsub("%%", "%%%%"))
end

function H.map(tab)
  local opts, act, what = tab.opts, {}, {}
  if opts.on_accept then
    what.ya = opts.accept or "take this text"
    function act.ya()
      local lines = api.nvim_buf_get_lines(tab.proposal, 0, -1, true)
      local is_edited = not vim.deep_equal(lines, tab.after.lines)
      local text = not is_edited and tab.after.text or H.joined(tab.after, lines)
      H.decide(tab, opts.on_accept, text, is_edited, lines)
    end
  end
  if opts.on_decline then
    what.yn = opts.decline or "decline"
    function act.yn()
      H.decide(tab, opts.on_decline)
    end
  end
  for _, buf in ipairs(H.buffers(tab)) do
    if next(act) then
      require("parley.keys").decide(buf, { act = act, what = what })
    end
    vim.keymap.set("n", "q", function()
      H.close(tab)
    end, { buffer = buf, nowait = true, desc = "Parley: close this diff" })
  end
end

--- Close the tab page, then call the function for the user's decision.
function H.decide(tab, act, ...)
  tab.is_decided = true
  H.close(tab)
  act(...)
end

--- Close the tab page as soon as one of its windows closes or shows another buffer.
function H.watch(tab)
  api.nvim_create_autocmd("WinClosed", {
    group = tab.id,
    pattern = vim.tbl_map(tostring, H.windows(tab)),
    callback = function()
      H.end_diff(tab)
      tab.is_here = tab.is_here or api.nvim_get_current_tabpage() == tab.page
      vim.schedule(function()
        H.close(tab)
      end)
    end,
  })
  for _, buf in ipairs(H.buffers(tab)) do
    api.nvim_create_autocmd("BufWipeout", {
      group = tab.id,
      buffer = buf,
      callback = function()
        vim.schedule(function()
          H.close(tab)
        end)
      end,
    })
  end
end

--- The buffer that each window should show.
function H.shown(tab)
  local shown = { [tab.left] = tab.live or tab.before, [tab.right] = tab.proposal }
  if tab.middle then
    shown[tab.middle] = tab.base
  end
  return shown
end

--- End the diff in all windows while they still show its buffers. Otherwise, the file's buffer
--- would keep the options for its next window.
function H.end_diff(tab)
  for win, buf in pairs(H.shown(tab)) do
    if api.nvim_win_is_valid(win) then
      local is_ours = api.nvim_win_get_buf(win) == buf
      api.nvim_win_call(win, function()
        vim.cmd.diffoff()
        if is_ours then
          vim.wo[win][0].winbar = nil
        end
      end)
    end
  end
end

function H.close(tab)
  if not H.tabs[tab.id] then
    return
  end
  H.tabs[tab.id] = nil
  api.nvim_del_augroup_by_id(tab.id)
  local is_here = tab.is_here or api.nvim_get_current_tabpage() == tab.page
  H.end_diff(tab)
  for _, win in ipairs({ tab.right, tab.middle or tab.right, tab.left }) do
    local shown = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win)
    if shown and vim.list_contains(vim.tbl_values(H.shown(tab)), shown) then
      H.leave(win)
    end
  end
  for _, buf in ipairs(H.buffers(tab)) do
    if api.nvim_buf_is_valid(buf) then
      require("parley.keys").decide(buf, nil)
      api.nvim_buf_delete(buf, { force = true })
    end
  end
  if is_here and api.nvim_win_is_valid(tab.back) then
    api.nvim_set_current_win(tab.back)
  end
  if not tab.is_decided and tab.opts.on_close then
    tab.opts.on_close()
  end
end

--- Close a window, even if its buffer has unsaved changes, which stay in the buffer.
function H.leave(win)
  if not pcall(api.nvim_win_close, win, true) then
    require("parley.pages").leave(win)
  end
end

--- A file has one diff at a time, because its windows would be compared with both proposals.
function H.close_others(buf)
  for _, other in pairs(H.tabs) do
    if other.live == buf then
      H.close(other)
    end
  end
end

--- Put the cursor on the first change.
function H.go_to_first_change()
  api.nvim_win_set_cursor(0, { 1, 0 })
  if vim.fn.diff_hlID(1, 1) == 0 and vim.fn.diff_filler(1) == 0 then
    vim.cmd("silent! normal! ]c")
  end
end

return M
