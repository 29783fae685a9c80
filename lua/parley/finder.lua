--- Lets the user pick a chat, with an installed picker that previews the file, or with
--- `vim.ui.select`.
local M = {}

local api = vim.api
local H = { show = {} }

-- In order of preference.
local names = { "snacks", "telescope", "fzf-lua" }

---@class parley.ChatRow
---@field path string
---@field when string
---@field topic string
---@field details string its folder, tags and agent
---@field line? integer the line that matches the search
---@field text? string the line's text

--- Let the user pick a chat, and open it.
---@param chats parley.ChatRow[]
---@param note? string a note about the list
function M.pick(chats, note)
  local title = "Chats" .. (note and note ~= "" and (" (%s)"):format(note) or "")
  local set = require("parley.host").setting("picker") or "auto"
  for _, name in ipairs(set == "auto" and names or { set }) do
    if H.show[name] and H.is_there(name) then
      local ok, why = pcall(H.show[name], chats, title)
      if ok then
        return
      end
      require("parley.host").message(("%s cannot list the chats: %s"):format(name, why), "warn")
    elseif set == name and name ~= "select" then
      require("parley.host").message(("the picker %s is not installed"):format(name), "warn")
    end
  end
  H.select(chats, title)
end

--- Whether a picker is installed. Snacks has other parts as well, so its picker must be enabled.
function H.is_there(name)
  local module = require("parley.plugins").get(name)
  if name == "snacks" then
    return vim.tbl_get(module or {}, "config", "picker", "enabled") == true
  end
  return module ~= nil
end

--- Use `vim.ui.select`. Neovim's own function writes the whole list on the screen, so pass only the
--- rows that fit.
function H.select(chats, title)
  local own = require("parley.plugins").is_builtin(vim.ui.select)
  local most = own and math.max(vim.o.lines - 4, 1) or #chats
  if #chats > most then
    title = ("The newest %d of %d chats; :ParleyFind {words} narrows the list"):format(most, #chats)
  end
  require("parley.dialogs").pick(vim.list_slice(chats, 1, most), {
    prompt = title,
    kind = "parley_chat",
    format_item = function(chat)
      return H.row(chat, own and vim.o.columns - 6 or nil)
    end,
  }, function(chat)
    if chat then
      H.open(chat)
    end
  end)
end

-- https://github.com/folke/snacks.nvim/blob/main/docs/picker.md, read on 2026-11-23: `items`
-- replace a finder; an item has `text` to match, and `file` and `pos` for the preview "file".
function H.show.snacks(chats, title)
  require("snacks").picker.pick({
    title = title,
    items = vim.tbl_map(function(chat)
      return { text = H.row(chat), file = chat.path, pos = { chat.line or 1, 0 }, chat = chat }
    end, chats),
    format = function(item)
      local chat = item.chat
      local row = { { chat.when, "Comment" }, { "  " .. chat.topic } }
      for _, text in ipairs({ chat.details, chat.text or "" }) do
        if text ~= "" then
          row[#row + 1] = { "  " .. text, "Comment" }
        end
      end
      return row
    end,
    preview = "file",
    sort = { fields = { "score:desc", "idx" } },
    confirm = function(picker, item)
      picker:close()
      if item then
        H.open(item.chat)
      end
    end,
  })
end

-- https://github.com/nvim-telescope/telescope.nvim/blob/master/developers.md, read on 2026-11-23:
-- an entry has `value`, `display` and `ordinal`; the preview, the user's own for greps, uses `path`
-- and `lnum`.
function H.show.telescope(chats, title)
  local actions, state = require("telescope.actions"), require("telescope.actions.state")
  local conf = require("telescope.config").values
  local finder = require("telescope.finders").new_table({
    results = chats,
    entry_maker = function(chat)
      local row = H.row(chat)
      return { value = chat, display = row, ordinal = row, path = chat.path, lnum = chat.line or 1 }
    end,
  })
  local function attach(prompt)
    actions.select_default:replace(function()
      local entry = state.get_selected_entry()
      actions.close(prompt)
      if entry then
        H.open(entry.value)
      end
    end)
    return true
  end
  local more = { prompt_title = title, finder = finder, attach_mappings = attach }
  more.sorter, more.previewer = conf.generic_sorter({}), conf.grep_previewer({})
  require("telescope.pickers").new({}, more):find()
end

-- https://github.com/ibhagwan/fzf-lua/wiki/Advanced#neovim-builtin-preview, read on 2026-11-23: a
-- previewer that extends `buffer_or_file` returns the file and line of an entry from `parse_entry`.
-- The number that fzf hides (`--with-nth`) identifies the chat.
H.show["fzf-lua"] = function(chats, title)
  local previewer = require("fzf-lua.previewer.builtin").buffer_or_file:extend()
  function previewer:new(...)
    previewer.super.new(self, ...)
    setmetatable(self, previewer)
    return self
  end
  local function chat_of(entry)
    return chats[tonumber(entry:match("^%d+"))]
  end
  function previewer.parse_entry(_, entry)
    local chat = chat_of(entry)
    return { path = chat.path, line = chat.line or 1, col = 1 }
  end
  local rows = {}
  for number, chat in ipairs(chats) do
    rows[number] = ("%d\t%s"):format(number, H.row(chat))
  end
  require("fzf-lua").fzf_exec(rows, {
    prompt = "Chats> ",
    winopts = { title = (" %s "):format(title) },
    previewer = previewer,
    fzf_opts = { ["--delimiter"] = "\t", ["--with-nth"] = "2.." },
    actions = {
      default = function(selected)
        if selected and selected[1] then
          H.open(chat_of(selected[1]))
        end
      end,
    },
  })
end

--- A chat as a row of at most `width` cells. The details have at most half of the room after the
--- time, or a third if there is a matching line; the topic and the line share the rest.
---@param width? integer
function H.row(chat, width)
  local topic, text = chat.topic, chat.text and ("  — " .. chat.text) or ""
  local details = chat.details ~= "" and ("  " .. chat.details) or ""
  if width then
    local cells = vim.fn.strdisplaywidth
    local left = math.max(width - #chat.when - 2, 10)
    local share = math.floor(left / (text == "" and 2 or 3))
    details = H.cut(details, math.max(share, left - cells(topic) - cells(text)))
    left = left - cells(details)
    topic = H.cut(topic, math.max(left - cells(text), math.floor(left / 2)))
    text = H.cut(text, left - cells(topic))
  end
  return chat.when .. "  " .. topic .. details .. text
end

--- A text cut to a number of cells.
function H.cut(text, width)
  if vim.fn.strdisplaywidth(text) <= width then
    return text
  end
  local count = vim.fn.strchars(text)
  while count > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) >= width do
    count = count - 1
  end
  return vim.fn.strcharpart(text, 0, count) .. "…"
end

--- Open a chat at the matching line. Do not reload an open chat, which would end its turn.
function H.open(chat)
  local buf = vim.fn.bufadd(chat.path)
  local window = require("parley.window")
  if not window.try(window.go, buf, window.expected("find")) then
    return
  end
  vim.bo[buf].buflisted = true
  if chat.line then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { math.min(chat.line, api.nvim_buf_line_count(0)), 0 })
    vim.cmd("normal! zvzz")
  end
end

return M
