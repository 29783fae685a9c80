--- A chat's colours: its marker lines, and the highlighter for its Markdown.
local M = {}

local api = vim.api
local known = require("parley.known")
local rows = require("parley.buffer_rows")
local longest = 1000 -- the maximum number of lines for Treesitter
local parse_ms = 150 -- while Parley writes, the shortest time between two parses
local H = { chats = {}, tame = {}, treesitter = {}, held = {}, timers = {}, slowest = 0 }

-- In Markdown, a model's thinking is a quote; without this, it would be a chat's brightest text.
H.thinking = [[
((block_quote) @parley.thinking (#parley-thinking? @parley.thinking) (#set! priority 120))
]]

local links = {
  ["@parley.thinking"] = "ParleyThinking",
  ParleyQuestion = "Title",
  ParleyAnswer = "Special",
  ParleyProposal = "Comment",
  ParleyResult = "Comment",
  ParleyThinking = "Comment",
  ParleyNote = "WarningMsg",
  ParleySummary = "Comment",
  ParleyPrompt = "Question",
  ParleyHint = "Comment",
  ParleyCurrent = "Visual",
  ParleyTool = "Function",
  ParleyServer = "Comment",
  ParleyArgument = "Identifier",
  ParleyValue = "String",
  ParleyAdded = "Added",
  ParleyRemoved = "Removed",
  ParleyContext = "Normal",
  ParleyStatus = "Comment",
  ParleyQuestionLine = "CursorLine",
  ParleyPageHeading = "Title",
  ParleyPageKey = "Special",
  ParleyRewriteOld = "DiffDelete",
  ParleyRewriteNew = "DiffAdd",
}

--- Highlight a chat's lines, but only the lines on the screen.
function M.chat(buf)
  M.set_links()
  H.chats[buf] = true
  H.choose_treesitter(buf)
  H.tame_treesitter(buf)
  H.tame_syntax(buf)
  if H.provided then
    return
  end
  H.provided = true
  api.nvim_create_autocmd("ColorScheme", { callback = M.set_links })
  api.nvim_create_autocmd("Syntax", {
    pattern = "markdown",
    callback = function(event)
      if H.chats[event.buf] then
        H.tame_syntax(event.buf)
      end
    end,
  })
  api.nvim_set_decoration_provider(api.nvim_create_namespace("parley.look"), {
    on_start = function()
      H.began = vim.uv.hrtime()
    end,
    on_end = function()
      H.slowest = math.max(H.slowest, vim.uv.hrtime() - H.began)
    end,
    on_win = function(_, _, shown)
      return H.chats[shown] == true
    end,
    on_line = function(_, _, shown, row)
      H.look(shown, row)
    end,
  })
end

local looks = {
  { name = "question", group = "ParleyQuestion", line = "ParleyQuestionLine" },
  { name = "answer", group = "ParleyAnswer", line = "ParleyAnswerLine", whole = true },
  { name = "proposal", group = "ParleyProposal", whole = true },
  { name = "result", group = "ParleyResult", whole = true },
  { name = "thinking", group = "ParleyThinking", whole = true },
  { name = "note", group = "ParleyNote", whole = true },
  { name = "summary", group = "ParleySummary", whole = true },
}
local look_ns = api.nvim_create_namespace("parley.look")

function H.look(buf, row)
  local line = api.nvim_buf_get_text(buf, row, 0, row, -1, {})[1]
  if not line or line:byte() ~= 240 and line:byte() ~= 226 then
    return
  end
  for _, look in ipairs(looks) do
    if known.is(line, look.name) then
      local last = look.whole and #line or line:find(":", 1, true)
      H.paint(buf, row, { end_col = last, hl_group = "ParleyMarker", priority = 149 })
      H.paint(buf, row, { end_col = last, hl_group = look.group, priority = 150 })
      if look.line then
        local band = { end_row = row + 1, hl_group = look.line, hl_eol = true, priority = 10 }
        H.paint(buf, row, band)
        H.paint(
          buf,
          row,
          vim.tbl_extend("force", band, { hl_group = look.line .. "16", priority = 151 })
        )
      end
      return
    end
  end
end

function H.paint(buf, row, opts)
  opts.ephemeral, opts.strict = true, false -- the range may end after the last line
  api.nvim_buf_set_extmark(buf, look_ns, row, 0, opts)
end

--- Have Treesitter highlight a chat, once, if only the syntax file does. The syntax file takes ten
--- times as long for a page of prose, and shows `_` as an error. Later changes by the user stay.
--- Long chats are excluded, because for each piece of an answer, Neovim processes the whole text
--- that Treesitter highlights. For the same reason, end the highlighting that Neovim 0.12 starts in
--- long chats.
function H.choose_treesitter(buf)
  local set = require("parley.host").setting("highlight")
  local is_on = type(set) ~= "table" or set.treesitter ~= false
  if H.treesitter[buf] == nil and vim.bo[buf].filetype == "markdown" then
    local is_free = vim.treesitter.highlighter.active[buf] == nil and vim.bo[buf].syntax ~= ""
    local fits = is_on and api.nvim_buf_line_count(buf) <= longest
    H.treesitter[buf] = fits and is_free and H.start_treesitter(buf)
    if not fits and H.is_of_filetype(buf) then
      H.stop_treesitter(buf)
    end
  elseif not is_on and H.treesitter[buf] then
    H.stop_treesitter(buf)
  end
end

--- Whether Neovim's own Markdown file has started Treesitter, and has set how to stop it.
function H.is_of_filetype(buf)
  local undo = vim.b[buf].undo_ftplugin or ""
  return vim.treesitter.highlighter.active[buf] ~= nil
    and undo:find("vim.treesitter.stop", 1, true) ~= nil
end

function H.stop_treesitter(buf)
  H.treesitter[buf] = false
  vim.treesitter.stop(buf)
  vim.bo[buf].syntax = "markdown"
end

--- Have Treesitter highlight with our query or, if that fails, with the existing query. Returns
--- whether it does.
function H.start_treesitter(buf)
  local ok = pcall(function()
    local parser = vim.treesitter.get_parser(buf, "markdown")
    local highlighter =
      vim.treesitter.highlighter.new(parser, { queries = { markdown = H.highlights() } })
    highlighter.tree = H.patient(buf, parser)
    H.tame[buf] = highlighter
  end)
  return ok or pcall(vim.treesitter.start, buf, "markdown")
end

--- A tree for a highlighter alone, which is not parsed while a chat is held. Until then, Treesitter
--- moves the earlier colours with the text.
function H.patient(buf, tree)
  local patient = {}
  function patient.parse(_, range, on_parse)
    if H.held[buf] and next(tree:trees()) then
      return tree:trees()
    end
    return tree:parse(range, on_parse)
  end
  function patient.for_each_tree(_, act)
    return tree:for_each_tree(act)
  end
  return setmetatable(patient, { __index = tree })
end

--- Parley has written text from a row on: parse it soon, together with the text that follows, because
--- a parse takes longer than everything else about a piece of a reply, or about a call. The timer is
--- only for the end: usually, a piece is due to be drawn anyway.
function M.written(buf, row)
  local held = H.held[buf]
  if held then
    held.row = math.min(held.row, row)
    if vim.uv.now() - held.since >= parse_ms then
      H.release(buf)
    end
  elseif H.tame[buf] then
    H.held[buf] = { row = row, since = vim.uv.now() }
    H.timers[buf] = H.timers[buf] or assert(vim.uv.new_timer())
    H.timers[buf]:start(
      parse_ms + 30,
      0,
      vim.schedule_wrap(function()
        H.release(buf)
      end)
    )
  end
end

function H.release(buf)
  local held = H.held[buf]
  H.held[buf] = nil
  if held and api.nvim_buf_is_loaded(buf) then
    local first = rows.within(buf, held.row)
    api.nvim__redraw({ buf = buf, range = { first, -1 }, flush = false })
  end
end

--- How many milliseconds the slowest drawing of the screen took since the last call.
function M.slowest_ms()
  local slowest = H.slowest / 1e6
  H.slowest = 0
  return slowest
end

--- Markdown's query with ours, but without `conceal_lines`, which makes Neovim reparse a long
--- buffer synchronously on every redraw and cursor movement (0.11 and later).
function H.highlights()
  if not H.query then
    vim.treesitter.query.add_predicate(
      "parley-thinking?",
      H.is_thinking,
      { force = true, all = true }
    )
    local query = {}
    for _, file in ipairs(vim.treesitter.query.get_files("markdown", "highlights")) do
      query[#query + 1] = table.concat(vim.fn.readfile(file), "\n")
    end
    H.query = table.concat(query, "\n"):gsub('%(#set! conceal_lines "[^"]*"%)', "") .. H.thinking
  end
  return H.query
end

--- If another plugin has started Treesitter, use our query there.
function H.tame_treesitter(buf)
  local active = vim.treesitter.highlighter.active[buf]
  if active and active ~= H.tame[buf] then
    vim.treesitter.stop(buf)
    H.start_treesitter(buf)
  end
end

--- Whether the line above a quote is the thinking marker.
function H.is_thinking(match, _, source, predicate)
  local nodes = match[predicate[2]]
  local row = nodes and nodes[1]:start() or 0
  local line = row > 0 and api.nvim_buf_get_lines(source, row - 1, row, false)[1]
  return line and known.is(line, "thinking") or false
end

--- Correct the syntax file: it marks `_` between letters as an error, although Markdown allows it,
--- and it treats the text after a marker as Markdown.
function H.tame_syntax(buf)
  if vim.bo[buf].syntax == "markdown" then
    api.nvim_buf_call(buf, function()
      local starts =
        vim.iter({ "result", "proposal", "answer", "thinking", "note" }):map(known.start)
      local any = starts:join("\\|")
      vim.cmd("silent! syntax clear markdownError parleyLine")
      vim.cmd(("syntax match parleyLine /^\\%%(%s\\)\\%%uFE0F\\?:.*$/"):format(any))
    end)
  end
end

--- Define the highlight groups that the colour scheme does not define.
function M.set_links()
  for name, link in pairs(links) do
    api.nvim_set_hl(0, name, { link = link, default = true })
  end
  -- Markdown highlighters take the brackets in a marker line for a link; override that.
  api.nvim_set_hl(0, "ParleyMarker", { nocombine = true, default = true })
  -- If 'termguicolors' is off, a colour scheme (Neovim's own, for example) may lack a background
  -- for this group; then underline it.
  local band = api.nvim_get_hl(0, { name = "ParleyQuestionLine", link = false })
  if band.bg and not band.ctermbg then
    api.nvim_set_hl(0, "ParleyQuestionLine16", { cterm = { underline = true }, default = true })
  end
end

--- Forget a closed chat.
function M.forget(buf)
  H.chats[buf], H.tame[buf], H.treesitter[buf], H.held[buf] = nil, nil, nil, nil
  if H.timers[buf] then
    H.timers[buf]:close()
    H.timers[buf] = nil
  end
end

return M
