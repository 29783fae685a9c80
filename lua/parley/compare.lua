--- Compares the answers of several agents: a tab page with a window for each fork, in which the
--- question is asked. When the answers are complete, the windows show them as a diff.
local M = {}

local api = vim.api
local H = { tabs = {} }

---@class parley.Compared
---@field page integer the tab page
---@field sides parley.Side[] from left to right
---@field is_shown? boolean whether all answers were shown once

---@class parley.Side
---@field agent string
---@field buf integer
---@field win integer
---@field question integer the line of the question
---@field since integer when the agent was asked, in milliseconds
---@field took? integer how long the answer took; nil while it is being written

--- Open the forks of a chat next to each other, and ask each agent.
---@param id integer the handle at the question in the chat
---@param forks { path: string, agent: string }[]
function M.open(id, forks)
  local handle, window = require("parley.handle").get(id), require("parley.window")
  local origin = handle and vim.fn.fnamemodify(api.nvim_buf_get_name(handle.buf), ":t")
    or "the chat"
  window.try(function()
    vim.cmd("tab split")
    local tab = { page = api.nvim_get_current_tabpage(), sides = {} }
    for n, fork in ipairs(forks) do
      if n > 1 then
        vim.cmd("rightbelow vertical split")
      end
      table.insert(tab.sides, H.side(fork))
    end
    vim.cmd.wincmd("=")
    H.tabs[tab.page] = tab
    H.watch(tab)
    for _, side in ipairs(tab.sides) do
      H.ask(side)
    end
    api.nvim_set_current_win(tab.sides[1].win)
    local text = "asked in %d forks next to %s; :tabclose leaves them"
    require("parley.host").message(text:format(#forks, origin))
  end)
end

--- Show a fork in the current window.
---@return parley.Side
function H.side(fork)
  local win = api.nvim_get_current_win()
  if vim.fn.exists("+winfixbuf") == 1 then
    vim.wo[win].winfixbuf = false
  end
  local buf = require("parley.window").load(fork.path)
  if vim.bo[buf].filetype ~= "markdown" then
    vim.bo[buf].filetype = "markdown"
  end
  api.nvim_win_set_buf(win, buf)
  require("parley.chat").attach(buf)
  local wo = vim.wo[win][0]
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "auto", "0"
  wo.wrap, wo.linebreak, wo.foldmethod, wo.foldenable = true, true, "manual", true
  wo.foldtext = "v:lua.require'parley.compare'.text()"
  wo.winbar = ("%%{%%v:lua.require'parley.compare'.bar(%d)%%}"):format(win)
  local side = { agent = fork.agent, buf = buf, win = win, since = vim.uv.now() }
  side.question = H.question(buf)
  H.fold(side, api.nvim_buf_line_count(buf))
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
  return side
end

--- The line of a fork's last question, which its agent is to answer.
function H.question(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  for line = #lines, 1, -1 do
    if require("parley.known").is(lines[line], "question") then
      return line
    end
  end
  return 1
end

--- Fold the lines that all forks have: everything down to the question's end.
function H.fold(side, last)
  api.nvim_win_call(side.win, function()
    local view = vim.fn.winsaveview()
    if vim.fn.foldclosed(1) == 1 and vim.fn.foldclosedend(1) >= side.question then
      vim.cmd("silent! normal! ggzd")
    end
    vim.cmd(("silent! 1,%dfold"):format(last))
    vim.fn.winrestview(view)
  end)
end

--- The line of the answer to a side's question, if there is one.
---@return integer?
function H.answer(side)
  local lines = api.nvim_buf_get_lines(side.buf, side.question, -1, false)
  for n, line in ipairs(lines) do
    if require("parley.known").is(line, "answer") then
      return side.question + n
    end
  end
end

function H.ask(side)
  local row = api.nvim_buf_line_count(side.buf) - 1
  local handles = require("parley.handle")
  local handle = handles.open(side.buf, row, side.win)
  handles.watch(handle)
  local arguments = { regenerate = false, agent = "" }
  require("parley.chat").ask("respond", arguments, { handle = handle })
end

--- The text of the fold over the question and everything above it.
function M.text()
  local lines = api.nvim_buf_get_lines(0, 0, vim.v.foldend, false)
  for row = #lines, 1, -1 do
    if require("parley.known").is(lines[row], "question") then
      local title = require("parley.outline").title(lines, row)
      return ("%s: %s"):format(require("parley.known").markers.question:gsub(":$", ""), title)
    end
  end
  return vim.fn.foldtext()
end

--- The line above a window: the agent, then its status, or the answer's time, tokens and cost.
---@param win integer
function M.bar(win)
  for _, tab in pairs(H.tabs) do
    for _, side in ipairs(tab.sides) do
      if side.win == win then
        local text = vim.fn.strtrans((" %s  %s"):format(side.agent, H.state(side)))
        local chunks = { { text, "" } }
        text = require("parley.view").fit(chunks, api.nvim_win_get_width(win) - 1)[1][1]
        return "%#ParleyPageHeading#" .. text:gsub("%%", "%%%%") .. " %*"
      end
    end
  end
  return ""
end

function H.state(side)
  local step = require("parley.status").step(side.buf)
  if step ~= "" then
    return step
  end
  local usage, parts = (vim.b[side.buf].parley_usage or {}).chat, {}
  if side.took then
    table.insert(parts, ("%.1fs"):format(side.took / 1000))
  end
  if usage then
    table.insert(parts, ("↑%d ↓%d"):format(usage.input, usage.output))
    if usage.cost then
      table.insert(parts, ("$%.4f"):format(usage.cost))
    end
  end
  return table.concat(parts, "  ")
end

--- Follow the turns in the forks, until the tab page is closed.
function H.watch(tab)
  local group = api.nvim_create_augroup("parley.compare." .. tab.page, {})
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = { "ParleyStatus", "ParleyWaiting" },
    callback = function(event)
      for _, side in ipairs(tab.sides) do
        if side.buf == (event.data or {}).buf then
          H.changed(tab, side, event.data.text)
        end
      end
    end,
  })
  api.nvim_create_autocmd("TabClosed", {
    group = group,
    callback = function()
      if not api.nvim_tabpage_is_valid(tab.page) then
        H.tabs[tab.page] = nil
        api.nvim_del_augroup_by_id(group)
      end
    end,
  })
end

--- React to a fork's new status or its waiting calls: if no agent is writing any more, compare the
--- answers.
---@param text? string the status
function H.changed(tab, side, text)
  if not text then
    vim.cmd("redrawstatus!")
    return
  elseif text ~= "" then
    side.since = side.took and vim.uv.now() - side.took or side.since
    side.took = nil
  else
    side.took = side.took or vim.uv.now() - side.since
  end
  vim.schedule(function()
    H.compare(tab)
  end)
end

--- Show the windows as a diff while no agent writes, because the lines would jump.
function H.compare(tab)
  local is_over = vim.iter(tab.sides):all(function(side)
    return side.took ~= nil
  end)
  local sides = vim.tbl_filter(function(side)
    return api.nvim_win_is_valid(side.win) and api.nvim_win_get_buf(side.win) == side.buf
  end, tab.sides)
  vim.cmd("redrawstatus!")
  for _, side in ipairs(sides) do
    local wo = vim.wo[side.win][0]
    wo.diff, wo.scrollbind = is_over, is_over
  end
  if is_over and not tab.is_shown then
    tab.is_shown = true
    for _, side in ipairs(sides) do
      H.show(side)
    end
  end
end

--- Scroll to the start of an answer, unless calls are waiting in it.
function H.show(side)
  local line = H.answer(side)
  if line then
    H.fold(side, line - 1)
  end
  if line and (vim.b[side.buf].parley_waiting or 0) == 0 then
    api.nvim_win_call(side.win, function()
      vim.fn.winrestview({ lnum = line, col = 0, topline = 1, skipcol = 0 })
    end)
  end
end

return M
