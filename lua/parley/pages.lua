--- Parley's pages: scratch buffers, floats, and lists to choose from.
local M = {}

local api = vim.api
local H = { ns = api.nvim_create_namespace("parley.pages") }

--- Show lines in a scratch buffer in a separate window; replace a page with the same name.
---@param name string
---@param lines string[]
---@param filetype string
---@return integer buf
function M.scratch(name, lines, filetype)
  local buf = M.buffer(name)
  if buf == -1 then
    buf = api.nvim_create_buf(false, true)
    api.nvim_buf_set_name(buf, "parley://" .. name)
    vim.keymap.set("n", "q", function()
      M.leave(api.nvim_get_current_win())
    end, { buffer = buf, nowait = true, desc = "Parley: close this page" })
  end
  M.fill(buf, lines)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = filetype
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    api.nvim_set_current_win(win)
  else
    local is_row = require("parley.window").split(name)
    win = api.nvim_get_current_win()
    api.nvim_win_set_buf(win, buf)
    local wo = vim.wo[win][0]
    wo.linebreak, wo.breakindent, wo.breakindentopt = true, true, "shift:2"
    api.nvim_win_set_var(win, "parley_height", is_row and api.nvim_win_get_height(win) or 0)
  end
  api.nvim_win_set_cursor(win, { 1, 0 })
  M.fit(win)
  return buf
end

--- The window of a page whose lines the host sends again when they change. With `opening`, show the
--- page, and let `begin` set the keys of its buffer. Otherwise, a page that the user has closed stays
--- closed.
---@param name string
---@param lines string[]
---@param opening boolean
---@param begin fun(buf: integer)
---@return integer? win, integer? buf nil if the page is closed
function M.window(name, lines, opening, begin)
  if opening then
    begin(M.scratch(name, lines, "parley"))
  end
  local buf = M.buffer(name)
  local win = buf ~= -1 and vim.fn.bufwinid(buf) or -1
  if win ~= -1 then
    return win, buf
  end
end

--- Replace a page's lines.
function M.fill(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].modifiable = false
end

--- Make a page's window as high as its text, up to half of the screen. If the user or another
--- window has changed its height since, the window keeps that height.
function M.fit(win)
  local height = api.nvim_win_get_height(win)
  if vim.w[win].parley_height == height and vim.fn.winnr("$") > 1 then
    local needed = api.nvim_win_text_height(win, {}).all + vim.fn.getwininfo(win)[1].winbar
    api.nvim_win_set_height(win, math.max(1, math.min(needed, math.floor(vim.o.lines / 2))))
    api.nvim_win_set_var(win, "parley_height", api.nvim_win_get_height(win))
  end
end

--- How many of a page's rows, down to a line, are still below its window, or -1 if the page is not in
--- this tab page; `onward` first scrolls by a page.
---
--- Shows each row in full, because the user's options may fold lines or cut them off.
---@param name string
---@param last integer the line, from 1
---@param onward boolean
---@return integer
function M.rest(name, last, onward)
  local buf = M.buffer(name)
  local win = vim.fn.bufwinid(buf)
  if win == -1 then
    return -1
  end
  local wo = vim.wo[win][0]
  wo.wrap, wo.foldenable, wo.conceallevel = true, false, 0
  last = require("parley.buffer_rows").within(buf, last - 1) + 1
  local height = api.nvim_win_get_height(win) - vim.fn.getwininfo(win)[1].winbar
  local shown = height + (vim.w[win].parley_scrolled or 0)
  local rest = api.nvim_win_text_height(win, { end_row = last - 1 }).all - shown
  if onward and rest > 0 then
    local rows = math.min(rest, math.max(1, height - 1))
    api.nvim_win_call(win, function()
      wo.smoothscroll = true -- otherwise a long line would scroll away at once
      vim.cmd.normal({ vim.keycode(rows .. "<C-e>"), bang = true })
    end)
    api.nvim_win_set_var(win, "parley_scrolled", shown - height + rows)
    rest = rest - rows
  end
  return math.max(0, rest)
end

--- Close a page, in all tab pages.
---@param name string
function M.close(name)
  for _, win in ipairs(vim.fn.win_findbuf(M.buffer(name))) do
    M.leave(win)
  end
end

--- Show a whole call, as lines of Markdown, in a float at the cursor. The float closes when the
--- cursor moves; a second `K` enters it.
---@param buf? integer the chat
---@param sighting? integer the number of the call that the user reads
---@param has_review? boolean whether a diff shows the call's change
function M.float(lines, buf, sighting, has_review)
  -- Not as "markdown", which would leave out repeated blank lines and lines of dashes.
  local float, win = vim.lsp.util.open_floating_preview(lines, "", {
    border = "rounded",
    focus_id = "parley",
    max_width = math.min(100, vim.o.columns - 6),
    max_height = math.floor(vim.o.lines * 0.9),
    wrap = true,
  })
  H.highlight(float, lines)
  -- Show how much does not fit, so that the user does not unknowingly decide on half of a call.
  local below = api.nvim_win_text_height(win, {}).all - api.nvim_win_get_height(win)
  if below > 0 or has_review then
    local keys, is_in =
      { has_review and "d opens a diff" or nil }, api.nvim_get_current_win() == win
    if below > 0 and not is_in then
      table.insert(keys, ("+%s: K again enters"):format(below == 1 and "1 row" or below .. " rows"))
    end
    table.insert(keys, "q closes")
    local footer = (" %s "):format(table.concat(keys, ", "))
    local width = math.max(api.nvim_win_get_width(win), #footer)
    api.nvim_win_set_config(win, { footer = footer, footer_pos = "right", width = width })
  end
  H.close_by_key(buf, win)
  if buf and has_review then
    H.review_by_key(buf, float, win)
  end
  H.take_ruler_along(win)
  if buf and sighting and sighting > 0 then
    require("parley.sightings").read(buf, sighting, win)
  end
end

--- While a float is open, `q` closes it also from outside. Otherwise, `q` would begin to record the
--- next keys, for example the approval of the call.
function H.close_by_key(buf, win)
  if
    not buf
    or vim.fn.reg_recording() ~= ""
    or vim.fn.maparg("q", "n", false, true).buffer == 1
  then
    return
  end
  vim.keymap.set("n", "q", function()
    pcall(api.nvim_win_close, win, true)
  end, { buffer = buf, nowait = true, desc = "Close the float" })
  api.nvim_create_autocmd("WinClosed", {
    pattern = tostring(win),
    once = true,
    callback = function()
      pcall(vim.keymap.del, "n", "q", { buffer = buf })
    end,
  })
end

--- While a float is open, `d` opens the call's change as a diff, also from outside of the float.
function H.review_by_key(buf, float, win)
  local chat = api.nvim_get_current_win()
  local function review()
    pcall(api.nvim_win_close, win, true)
    if api.nvim_get_current_buf() ~= buf and api.nvim_win_is_valid(chat) then
      api.nvim_set_current_win(chat)
    end
    require("parley.review").ask()
  end
  local opts = { nowait = true, desc = "Open the change as a diff" }
  vim.keymap.set("n", "d", review, vim.tbl_extend("error", opts, { buffer = float }))
  if vim.fn.maparg("d", "n", false, true).buffer == 1 then
    return
  end
  vim.keymap.set("n", "d", review, vim.tbl_extend("error", opts, { buffer = buf }))
  api.nvim_create_autocmd("WinClosed", {
    pattern = tostring(win),
    once = true,
    callback = function()
      pcall(vim.keymap.del, "n", "d", { buffer = buf })
    end,
  })
end

--- Remove a float's ruler from the command line, where Neovim leaves it after the user was in the
--- float.
function H.take_ruler_along(win)
  api.nvim_create_autocmd("WinClosed", {
    pattern = tostring(win),
    once = true,
    callback = function()
      if api.nvim_get_current_win() == win then
        vim.schedule(function()
          require("parley.messages").wipe()
        end)
      end
    end,
  })
end

--- Show a chat's keys.
function M.keys(buf)
  local rows, lines, wide = H.keys(buf), { "# Keys of this chat (:help parley-keys)", "" }, 0
  for _, row in ipairs(rows) do
    row.lhs = table.concat(row.keys, "  ")
    wide = math.max(wide, #row.lhs)
  end
  for _, row in ipairs(rows) do
    local where = row.modes[1] == "Normal" and #row.modes == 1 and ""
      or (" (%s)"):format(table.concat(row.modes, ", "))
    table.insert(lines, row.lhs .. (" "):rep(wide + 2 - #row.lhs) .. row.what .. where)
  end
  local page = M.scratch("keys", lines, "parley")
  for number, row in ipairs(rows) do
    api.nvim_buf_set_extmark(
      page,
      H.ns,
      number + 1,
      0,
      { end_col = #row.lhs, hl_group = "ParleyPageKey" }
    )
  end
end

--- Let the user pick an agent, and choose whether to write it into the chat's file.
---@param agents { name: string, model: string, state: string, option?: string }[] the last one stands
---   for all models; `option` marks the mode or the model of the current agent
function M.pick_agent(buf, agents, current)
  local widest = { name = 0, model = 0 }
  for _, agent in ipairs(agents) do
    agent.title = agent.name .. (agent.name == current and " (now)" or "")
    local width = api.nvim_strwidth(agent.title)
    widest.name = math.max(widest.name, width <= 24 and width or 0)
    widest.model = math.max(widest.model, api.nvim_strwidth(agent.model))
  end
  local function padded(text, width)
    return text .. (" "):rep(math.max(2, width + 2 - api.nvim_strwidth(text)))
  end
  require("parley.dialogs").pick(agents, {
    prompt = "Agent",
    format_item = function(agent)
      return padded(agent.title, widest.name) .. padded(agent.model, widest.model) .. agent.state
    end,
  }, function(agent)
    if agent and agent == agents[#agents] then
      if api.nvim_buf_is_loaded(buf) then
        local name = api.nvim_buf_get_name(buf)
        require("parley.host").notify("models", { buf = buf, name = name })
      end
    elseif agent and agent.option then
      if api.nvim_buf_is_loaded(buf) then
        local name = api.nvim_buf_get_name(buf)
        require("parley.host").notify(
          "agent_option",
          { buf = buf, name = name, option = agent.option }
        )
      end
    elseif agent then
      H.keep_agent(buf, agent.name)
    end
  end)
end

--- Ask whether to write the agent into the chat's file, and send the host the answer.
function H.keep_agent(buf, agent)
  local answers = { "Until Neovim exits", "Always: write it into the chat's front matter" }
  local prompt = ("Agent of this chat: %s"):format(agent)
  vim.schedule(function() -- another plugin's list may still be closing
    require("parley.dialogs").pick(answers, { prompt = prompt }, function(_, number)
      if api.nvim_buf_is_loaded(buf) then
        local name = api.nvim_buf_get_name(buf)
        local choice = { buf = buf, name = name, agent = agent, stays = number == 2 }
        require("parley.host").notify("agent", choice)
      end
    end)
  end)
end

--- Ask the user once to confirm the agent that a file from elsewhere asks for.
function M.confirm_agent(buf, agent)
  local answers = { "No", "Yes, ask it", "No, choose another agent" }
  local prompt = ("This chat was not created here and asks for %s. Do you want to use it?"):format(
    agent
  )
  require("parley.dialogs").pick(answers, { prompt = prompt }, function(_, number)
    if not api.nvim_buf_is_loaded(buf) or api.nvim_get_current_buf() ~= buf then
      return
    elseif number == 2 then
      local name = api.nvim_buf_get_name(buf)
      require("parley.host").notify("confirm", { buf = buf, name = name, agent = agent })
      require("parley").respond()
    elseif number == 3 then
      require("parley").agent()
    end
  end)
end

--- A page's buffer; -1 if it is not open.
function M.buffer(name)
  return vim.fn.bufnr("^" .. vim.fn.escape("parley://" .. name, ".*[]~\\") .. "$")
end

local modes = { n = "Normal", i = "Insert", x = "Visual", o = "after an operator" }

--- Parley's current keys in a buffer: action, keys and modes. The choice keys come first.
function H.keys(buf)
  local rows, by = {}, {}
  for _, mode in ipairs({ "n", "i", "x", "o" }) do
    for _, map in ipairs(api.nvim_buf_get_keymap(buf, mode)) do
      local what = (map.desc or ""):match("^Parley: (.*)")
      if what then
        by[what] = by[what] or { what = what, keys = {}, modes = {} }
        table.insert(by[what].keys, map.lhs)
        table.insert(by[what].modes, modes[mode])
      end
    end
  end
  for _, row in pairs(by) do
    row.keys, row.modes = vim.fn.uniq(vim.fn.sort(row.keys)), vim.fn.uniq(row.modes)
    table.insert(rows, row)
  end
  local is_choice = require("parley.keys").is_choice
  table.sort(rows, function(one, other)
    if is_choice(one.what) ~= is_choice(other.what) then
      return is_choice(one.what)
    elseif one.modes[1] ~= other.modes[1] then
      return one.modes[1] == modes.n
        or (other.modes[1] ~= modes.n and one.modes[1] < other.modes[1])
    end
    local lhs, others = table.concat(one.keys), table.concat(other.keys)
    return lhs:lower() < others:lower() or (lhs:lower() == others:lower() and lhs > others)
  end)
  return rows
end

--- Close a window; the last window shows its earlier buffer again instead.
function M.leave(win)
  if pcall(api.nvim_win_close, win, false) then
    return
  end
  local page, before = api.nvim_win_get_buf(win), vim.fn.bufnr("#")
  if before == -1 or before == page or not vim.bo[before].buflisted then
    local others = vim.fn.getbufinfo({ buflisted = 1 })
    table.sort(others, function(one, other)
      return one.lastused > other.lastused
    end)
    before = others[1] and others[1].bufnr or api.nvim_create_buf(true, false)
  end
  api.nvim_win_set_buf(win, before)
end

--- Colour Markdown and, in its fences, each language with a parser or a syntax file. The marks of
--- titles and fences are covered, not concealed, because concealing would also hide JSON's quotes.
function H.highlight(buf, lines)
  if not pcall(vim.treesitter.start, buf, "markdown") then
    vim.bo[buf].syntax = "markdown"
  end
  local fence, first, language
  for row, line in ipairs(lines) do
    local ticks, name = line:match("^(```+)([%w_]*)$")
    if ticks and not fence then
      fence, first, language = ticks, row, name
      H.cover(buf, row, line, "")
    elseif ticks and ticks == fence and name == "" then
      H.syntax(buf, language, first, row)
      H.cover(buf, row, line, "")
      fence = nil
    elseif not fence then
      H.cover(
        buf,
        row,
        line,
        line:match("^%*%*(.*)%*%*$") or line:match("^`(.*)`$"),
        "ParleyPageHeading"
      )
    end
  end
end

--- Draw a text over a line that is at least as long.
function H.cover(buf, row, line, text, group)
  if text then
    local gap = (" "):rep(api.nvim_strwidth(line) - api.nvim_strwidth(text))
    local opts = { virt_text = { { text, group }, { gap } }, virt_text_pos = "overlay" }
    api.nvim_buf_set_extmark(buf, H.ns, row - 1, 0, opts)
  end
end

--- Colour the lines between two lines with a language's syntax file, if it has no parser.
function H.syntax(buf, language, first, last)
  local has_parser = pcall(vim.treesitter.language.inspect, language)
  local file = ("syntax/%s.vim"):format(language)
  if
    language == ""
    or language == "text"
    or has_parser
    or #api.nvim_get_runtime_file(file, false) == 0
  then
    return
  end
  api.nvim_buf_call(buf, function()
    vim.b.current_syntax = nil
    local lines = ([[start=/\%%%dl/ end=/\%%%dl$/]]):format(first + 1, last - 1)
    pcall(vim.cmd, ("syntax include @parley_%s %s"):format(language, file))
    pcall(
      vim.cmd,
      ("syntax region parleyCode%d %s contains=@parley_%s keepend"):format(first, lines, language)
    )
  end)
end

return M
