--- The keys of a chat: those that are always there, and those that decide on what waits.
local M = {}

local api = vim.api
local H = { waiting = {}, mapped = {}, typed = nil }

M.choices = { "yA", "ya", "yo", "yO", "yn", "yN" }

-- The keys that every chat has, and their commands: `respond` is `:ParleyRespond`. The default of a key is in
-- `known.lua`, and in `Keys` of `settings/values.py`.
local described = {
  respond = "Parley: move this exchange on",
  stop = "Parley: stop",
  agent = "Parley: choose the agent",
  outline = "Parley: list the questions",
}

--- The keys every chat has; once more, when the settings have changed.
function M.chat(buf)
  for _, map in ipairs(H.mapped[buf] or {}) do
    pcall(vim.keymap.del, map[1], map[2], { buffer = buf })
  end
  H.mapped[buf] = {}
  local function map(mode, lhs, rhs, what, opts)
    if type(lhs) == "string" and lhs ~= "" then
      vim.keymap.set(mode, lhs, rhs, vim.tbl_extend("error", opts or {}, { buffer = buf, desc = what }))
      table.insert(H.mapped[buf], { mode, lhs })
    end
  end
  local keys = H.settings()
  for name, what in pairs(described) do
    map("n", keys[name], "<Cmd>Parley" .. name:gsub("^%l", string.upper) .. "<CR>", what)
  end
  map("i", keys.respond, "<Esc><Cmd>ParleyRespond<CR>", described.respond)
  map("n", keys.outline and keys.outline ~= "" and "gO", "<Cmd>ParleyOutline<CR>", described.outline)
  for lhs, sign in pairs({ ["]]"] = 1, ["[["] = -1 }) do
    map("n", lhs, function()
      require("parley").jump(sign * vim.v.count1)
    end, sign > 0 and "Parley: next question" or "Parley: previous question")
  end
  require("parley.objects").map(buf, map, keys)
end

--- The keys that decide, there only while something waits in the buffer.
---@param waits boolean
function M.wait(buf, waits)
  local there = H.waiting[buf] ~= nil
  if waits == there or not api.nvim_buf_is_loaded(buf) then
    return
  elseif waits then
    H.waiting[buf] = {}
    if H.settings().choices then
      for _, lhs in ipairs(M.choices) do
        H.choice(buf, lhs)
      end
    end
    H.details(buf)
  else
    H.remove(buf)
  end
  H.listen()
end

--- What `ya` and the like do: the choice, or what Vim does without us.
---
--- It is a choice only where something waits, with no register and no count, and when nothing was typed
--- right after it; else the keys are given back as they are. (Given back, the first of them is not mapped
--- again, and the operator takes the user's own text objects.) Whether somebody typed it is known only when
--- the command runs: keys from a macro, from `:normal` or from a plugin are never seen as typed.
function H.choose(buf, lhs)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local native = vim.v.count > 0
    or H.register_named()
    or vim.fn.getchar(1) ~= 0
    or vim.fn.reg_executing() ~= ""
    or not require("parley.view").waits_at(buf, row)
  return native and lhs or ("<Cmd>lua require('parley.keys').act('%s')<CR>"):format(lhs)
end

--- A chat is closed, and its keys with it.
function M.forget(buf)
  H.mapped[buf], H.waiting[buf] = nil, nil
  H.listen()
end

function M.act(lhs)
  if H.typed == lhs then
    require("parley.chat").ask("choose", { key = lhs, rule = "key", reason = "" })
  end
end

function H.choice(buf, lhs)
  H.map(buf, lhs, function()
    return H.choose(buf, lhs)
  end, { expr = true, remap = true, nowait = not H.must_wait(buf, lhs), desc = "Parley: " .. lhs })
  if H.must_wait(buf, lhs) then
    -- A longer map has Vim itself wait `timeoutlen` for a key that would make it a text object.
    H.map(buf, lhs .. "<Plug>(parley-wait)", "<Nop>", {})
  end
end

--- Whether the keys may be the start of something else: a text object, or a longer map.
function H.must_wait(buf, lhs)
  local object = lhs:sub(2)
  if object == "a" then
    return true
  end
  local function any(mode, test)
    local maps = vim.list_extend(api.nvim_buf_get_keymap(buf, mode), api.nvim_get_keymap(mode))
    return vim.iter(maps):any(function(map)
      return test(map.lhs) and not map.lhs:find("parley-wait", 1, true)
    end)
  end
  return any("n", function(other)
    return vim.startswith(other, lhs) and other ~= lhs
  end) or any("o", function(other)
    return vim.startswith(other, object)
  end)
end

--- Whether a register was named. With `unnamed` and `unnamedplus` in 'clipboard' the default one is another.
function H.register_named()
  local clipboard = vim.o.clipboard
  local default = clipboard:find("unnamedplus", 1, true) and "+"
    or clipboard:find("unnamed", 1, true) and "*"
    or '"'
  return vim.v.register ~= '"' and vim.v.register ~= default
end

--- `K` tells all of the proposal it is on; elsewhere it is what it was.
function H.details(buf)
  local before = H.own_map(buf, "K")
  local function elsewhere()
    if before and before.callback then
      H.before = before.callback
      return vim.keycode("<Cmd>lua require('parley.keys').before()<CR>")
    end
    return before and before.rhs and vim.keycode(before.rhs) or "K"
  end
  H.map(buf, "K", function()
    local row = api.nvim_win_get_cursor(0)[1] - 1
    if vim.v.count == 0 and require("parley.view").proposal_at(buf, row) then
      return vim.keycode("<Cmd>lua require('parley.chat').ask('details', {})<CR>")
    end
    return elsewhere()
  end, { expr = true, replace_keycodes = false, desc = "Parley: all of this tool call" })
end

function M.before()
  H.before()
end

function H.map(buf, lhs, rhs, opts)
  table.insert(H.waiting[buf], { lhs = lhs, before = H.own_map(buf, lhs) })
  vim.keymap.set("n", lhs, rhs, vim.tbl_extend("force", opts, { buffer = buf }))
end

function H.remove(buf)
  local maps = H.waiting[buf]
  H.waiting[buf] = nil
  for _, map in ipairs(maps) do
    pcall(vim.keymap.del, "n", map.lhs, { buffer = buf })
    if map.before then
      api.nvim_buf_call(buf, function()
        vim.fn.mapset("n", false, map.before)
      end)
    end
  end
end

--- The buffer's own map that is there already, nil if there is none.
function H.own_map(buf, lhs)
  return api.nvim_buf_call(buf, function()
    local map = vim.fn.maparg(lhs, "n", false, true)
    return map.buffer == 1 and map or nil
  end)
end

--- Listen to what is typed, as long as a buffer has keys to which it matters.
function H.listen()
  local listen = next(H.waiting) ~= nil
  if listen and not H.listening then
    H.listening = api.nvim_create_namespace("parley.keys")
    vim.on_key(function(_, typed)
      H.typed = typed
    end, H.listening)
  elseif not listen and H.listening then
    vim.on_key(nil, H.listening)
    H.listening = nil
  end
end

function H.settings()
  local set = require("parley.host").setting("keys")
  return vim.tbl_extend("force", require("parley.known").keys, type(set) == "table" and set or {})
end

return M
