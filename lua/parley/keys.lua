--- A chat's keys: keys that always exist, and keys that decide on waiting calls; in other buffers,
--- the same keys decide on proposed changes.
local M = {}

local api = vim.api
local H = {
  waiting = {},
  deciders = {},
  mapped = {},
  details = {},
  typed = nil,
  last = nil,
  native = "<Plug>(parley-native)",
}

M.choices = { "yA", "ya", "yo", "yO", "yn", "yN" }

local meanings = {
  ya = "approve all waiting calls",
  yA = "approve all waiting calls, and remember their tools",
  yo = "approve this call",
  yO = "approve all calls of this tool, and remember the tool",
  yn = "decline this call",
  yN = "decline all waiting calls",
}
local in_case = { ya = "yo", yO = "yA" } -- their meaning with `keys.scope = "case"`
local no = {
  yn = "Decline this call. Reason (may be empty): ",
  yN = "Decline all waiting calls. Reason (may be empty): ",
}

-- The keys in every chat, by command: `respond` is `:ParleyRespond`. Their defaults are in
-- `known.lua` and in the class `Keys` in `settings/values.py`.
local described = {
  respond = "Parley: continue this exchange",
  stop = "Parley: stop",
  agent = "Parley: choose the agent",
  apply = "Parley: compare this code block with its file",
  outline = "Parley: list the questions",
  question = "Parley: go to the question at the end",
}

--- Whether a key with this description is a choice key.
---@param what string
function M.is_choice(what)
  return vim.list_contains(vim.tbl_values(meanings), what)
end

--- Map the keys that every chat has; map them again after the settings have changed.
function M.chat(buf)
  for _, map in ipairs(H.mapped[buf] or {}) do
    pcall(vim.keymap.del, map[1], map[2], { buffer = buf })
  end
  H.mapped[buf] = {}
  local function map(mode, lhs, rhs, what, opts)
    if type(lhs) == "string" and lhs ~= "" then
      vim.keymap.set(
        mode,
        lhs,
        rhs,
        vim.tbl_extend("error", opts or {}, { buffer = buf, desc = what })
      )
      table.insert(H.mapped[buf], { mode, lhs })
    end
  end
  local keys = H.settings()
  for name, what in pairs(described) do
    map("n", keys[name], "<Cmd>Parley" .. name:gsub("^%l", string.upper) .. "<CR>", what)
  end
  map("i", keys.respond, "<Esc><Cmd>ParleyRespond<CR>", described.respond)
  map("i", keys.question, "<Esc><Cmd>ParleyQuestion<CR>", described.question)
  map(
    "n",
    keys.outline and keys.outline ~= "" and "gO",
    "<Cmd>ParleyOutline<CR>",
    described.outline
  )
  map("n", keys.help, function()
    require("parley.pages").keys(buf)
  end, "Parley: show this page of keys")
  for lhs, sign in pairs({ ["]]"] = 1, ["[["] = -1 }) do
    map("n", lhs, function()
      require("parley").jump(sign * vim.v.count1)
    end, sign > 0 and "Parley: next question" or "Parley: previous question")
  end
  require("parley.objects").map(buf, map, keys)
  if H.waiting[buf] then
    H.remove(buf)
    H.begin(buf)
  end
end

--- Map or remove the choice keys, which exist only while a call waits in the buffer.
---@param waits boolean
function M.wait(buf, waits)
  local there = H.waiting[buf] ~= nil
  if waits == there or not api.nvim_buf_is_loaded(buf) then
    return
  elseif waits then
    H.begin(buf)
  else
    H.remove(buf)
  end
  H.listen()
end

--- Whether a call in a buffer waits for a choice.
function M.waits(buf)
  return H.waiting[buf] ~= nil
end

---@class parley.Decider
---@field here? fun(): boolean whether the keys apply at the cursor; by default, everywhere
---@field act table<string, fun()> by choice, or by another key
---@field what table<string, string> the descriptions

--- Map keys in a buffer outside chats for a decision on a change that is shown there; nil removes
--- them, and restores the buffer's own maps. The same keys as in chats decide.
---@param decider? parley.Decider
function M.decide(buf, decider)
  if H.deciders[buf] then
    H.deciders[buf] = nil
    if api.nvim_buf_is_loaded(buf) then
      H.remove(buf)
    end
    H.waiting[buf] = nil
  end
  if decider then
    H.deciders[buf], H.waiting[buf] = decider, {}
    for key in vim.spairs(decider.act) do
      local lhs, what = M.decision(key), "Parley: " .. decider.what[key]
      if vim.list_contains(M.choices, key) then
        H.choice(buf, key, lhs, decider.what[key])
      else
        local opts = { expr = true, remap = true, replace_keycodes = false, desc = what }
        H.map(buf, lhs, function()
          return H.other(buf, key, lhs)
        end, opts)
      end
    end
  end
  H.listen()
end

--- The key that decides on a proposed change: the setting, or the default if the user has none.
---@param key string a choice, or another key
---@return string
function M.decision(key)
  local set = H.settings().choices[key]
  return type(set) == "string" and set ~= "" and set or key
end

--- Decide on the change that is shown at the cursor, without a key; false if there is none.
---@param choice string
---@return boolean
function M.decided(choice)
  local decider = H.deciders[api.nvim_get_current_buf()]
  local act = decider and (not decider.here or decider.here()) and decider.act[choice]
  if act then
    act()
  end
  return act ~= nil and act ~= false
end

--- Forget a closed chat and remove its keys, because a reloaded buffer would still have them.
function M.forget(buf)
  M.calls(buf, false)
  if H.waiting[buf] then
    H.remove(buf)
  end
  H.mapped[buf], H.waiting[buf], H.details[buf] = nil, nil, nil
  H.listen()
end

--- Decide, if the user typed the key: our key, or the user's own key for `<Plug>(parley-ya)`.
---@param choice string
---@param plug? boolean
function M.act(choice, plug)
  require("parley.window").try(H.act, choice, plug)
end

function H.act(choice, plug)
  local buf = api.nvim_get_current_buf()
  if plug and not H.waits_here(buf) then
    require("parley.host").message("no tool call is waiting for a choice here", "warn")
    return
  end
  local typed, lhs = H.typed or "", H.settings().choices[choice]
  lhs = H.deciders[buf] and M.decision(choice) or lhs
  if type(lhs) == "string" and H.is_spelling(typed, lhs:rep(2)) then
    typed = vim.keycode(lhs)
  end
  if typed == "" or not (plug or H.is_spelling(typed, lhs)) then
    return
  end
  local last = H.last
  local is_same = last ~= nil and last.buf == buf and last.choice == choice
  local now = require("parley.sightings").now()
  local again = is_same and now - (last.told or now) or nil
  H.last = { buf = buf, choice = choice, typed = typed }
  if H.deciders[buf] then
    M.decided(choice)
  elseif no[choice] and (choice == "yN" or require("parley.view").proposal_at(buf, H.row())) then
    M.refuse(choice)
  else
    require("parley.chat").ask("choose", { key = choice, rule = "key", reason = "", again = again })
  end
end

--- The last key only showed a message. If the user presses it again from now on, it decides.
function M.told(buf)
  if H.last and H.last.buf == buf and not H.last.told then
    H.last.told = require("parley.sightings").now()
  end
end

--- Show the whole call under the cursor.
function M.details()
  require("parley.chat").ask("details", {})
end

--- Ask why the user declines. The choice applies to the calls that are under the cursor then, or at
--- the handle.
---@param choice string
---@param handle? integer
function M.refuse(choice, handle)
  local chat, handles = require("parley.chat"), require("parley.handle")
  handle = handle or chat.hold()
  local function done(reason)
    if type(reason) == "string" then
      chat.ask("choose", { key = choice, rule = "key", reason = reason }, { handle = handle })
    else
      handles.close(handle)
    end
  end
  if not pcall(require("parley.dialogs").line, no[choice], nil, done) then
    done(nil) -- interrupted
  end
end

--- Map the choice keys in a buffer.
function H.begin(buf)
  H.waiting[buf] = {}
  local keys = H.settings()
  for _, choice in ipairs(keys.choices.enabled and M.choices or {}) do
    local lhs = keys.choices[choice]
    if type(lhs) == "string" and lhs ~= "" then
      H.choice(buf, choice, lhs, meanings[keys.scope == "case" and in_case[choice] or choice])
    end
  end
end

function H.choice(buf, choice, lhs, meaning)
  local raw = vim.keycode(lhs)
  local must_wait = H.must_wait(buf, raw)
  local function map(keys, what)
    H.map(
      buf,
      keys,
      function()
        return H.choose(buf, choice, vim.keycode(keys))
      end,
      { expr = true, remap = true, replace_keycodes = false, nowait = not must_wait, desc = what }
    )
  end
  map(lhs, "Parley: " .. meaning)
  if must_wait then
    map(lhs:rep(2), ("Parley: %s, once"):format(meaning)) -- else the last key is a command
    -- A longer map makes Vim wait `timeoutlen` for a key that would begin a text object.
    H.map(buf, lhs .. "<Plug>(parley-wait)", "<Nop>", { desc = "which_key_ignore" })
  end
end

--- The action of `ya` and similar keys: the choice, or Vim's own command.
---
--- The keys are a choice only if a call waits, if there is no register or count, and if no other
--- key follows quickly; otherwise Vim receives them unchanged. Only the running command can tell
--- whether the user typed the keys: keys from a macro, from `:normal` or from a plugin never count
--- as typed.
function H.choose(buf, choice, lhs)
  local native = vim.v.count > 0
    or H.register_named()
    or vim.fn.getchar(1) ~= 0
    or vim.fn.reg_executing() ~= ""
    or not H.waits_here(buf)
  if native then
    return H.given_back(buf, lhs)
  end
  return vim.keycode(("<Cmd>lua require('parley.keys').act('%s')<CR>"):format(choice))
end

--- The action of a decider's other keys: the decision, or Vim's own command.
function H.other(buf, key, lhs)
  if vim.v.count > 0 or H.register_named() or not H.waits_here(buf) then
    return H.given_back(buf, lhs)
  end
  return vim.keycode(("<Cmd>lua require('parley.keys').decided('%s')<CR>"):format(key))
end

--- What the keys would be without our maps: the user's own map for them or for their beginning, and
--- the remaining keys. Without such a map, they are the keys themselves: the first key is not
--- remapped, and an operator uses the user's own text objects.
function H.given_back(buf, lhs)
  for length = #lhs, 1, -1 do
    local map = H.map_of_the_user(buf, lhs:sub(1, length))
    if map then
      map.lhs, map.lhsraw, map.lhsrawalt = H.native, vim.keycode(H.native), nil
      map.desc = "Parley: do what these keys do outside chats"
      vim.fn.mapset(map)
      return map.lhsraw .. lhs:sub(length + 1)
    end
  end
  return lhs
end

--- The map that some keys would have without ours, as for |mapset()|.
function H.map_of_the_user(buf, lhs)
  for _, ours in ipairs(H.waiting[buf] or {}) do
    if vim.keycode(ours.lhs) == lhs then
      return ours.before
        or vim.iter(api.nvim_get_keymap("n")):find(function(map)
          return map.lhsraw == lhs
        end)
    end
  end
  local map = vim.fn.maparg(lhs, "n", false, true)
  return next(map) ~= nil and map or nil
end

function H.row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

function H.waits_here(buf)
  local decider = H.deciders[buf]
  if decider then
    return not decider.here or decider.here()
  end
  return require("parley.view").waits_at(buf, H.row())
end

--- Whether the typed keys are a map's keys. With 'langmap', keys of another layout may replace
--- them.
function H.is_spelling(typed, lhs)
  lhs = type(lhs) == "string" and vim.keycode(lhs) or ""
  return vim.fn.keytrans(typed) == vim.fn.keytrans(lhs) -- a modifier may have two spellings
    or (vim.o.langmap ~= "" and vim.fn.strchars(typed) == vim.fn.strchars(lhs))
end

--- Whether the keys may be the beginning of a text object or a longer map.
function H.must_wait(buf, lhs)
  local object = lhs:match("^y(.+)$")
  if object == "a" then
    return true
  end
  local function any(mode, test)
    local maps = vim.list_extend(api.nvim_buf_get_keymap(buf, mode), api.nvim_get_keymap(mode))
    return vim.iter(maps):any(function(map)
      return test(map.lhsraw) and not map.lhs:find("parley-wait", 1, true)
    end)
  end
  return any("n", function(other)
    return vim.startswith(other, lhs) and other ~= lhs
  end) or object ~= nil and any("o", function(other)
    return vim.startswith(other, object)
  end)
end

--- Whether the user named a register. `unnamed` and `unnamedplus` in 'clipboard' change the default
--- register.
function H.register_named()
  local clipboard = vim.o.clipboard
  local default = clipboard:find("unnamedplus", 1, true) and "+"
    or clipboard:find("unnamed", 1, true) and "*"
    or '"'
  return vim.v.register ~= '"' and vim.v.register ~= default
end

--- Map `K` in a buffer with calls: on a call, it shows the whole call; elsewhere it works as
--- before.
---@param has_calls boolean
function M.calls(buf, has_calls)
  local there = H.details[buf] ~= nil
  if has_calls == there or not api.nvim_buf_is_loaded(buf) then
    return
  elseif has_calls then
    H.details[buf] = { lhs = "K", before = H.own_map(buf, "K") }
    H.map_details(buf, H.details[buf].before)
  else
    H.give_back(buf, H.details[buf])
    H.details[buf] = nil
  end
end

function H.map_details(buf, before)
  local function elsewhere()
    if before and before.callback then
      H.before = before.callback
      return vim.keycode("<Cmd>lua require('parley.keys').before()<CR>")
    end
    return before and before.rhs and vim.keycode(before.rhs) or "K"
  end
  vim.keymap.set("n", "K", function()
    if vim.v.count == 0 and require("parley.view").call_at(buf, H.row()) then
      return vim.keycode("<Cmd>lua require('parley.keys').details()<CR>")
    end
    return elsewhere()
  end, {
    expr = true,
    replace_keycodes = false,
    buffer = buf,
    desc = "Parley: show all of this tool call",
  })
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
    H.give_back(buf, map)
  end
end

--- Unmap our map, and restore the previous one.
function H.give_back(buf, map)
  pcall(vim.keymap.del, "n", map.lhs, { buffer = buf })
  if map.before then
    api.nvim_buf_call(buf, function()
      vim.fn.mapset("n", false, map.before)
    end)
  end
end

--- The buffer's own map for some keys; nil if there is none.
function H.own_map(buf, lhs)
  return api.nvim_buf_call(buf, function()
    local map = vim.fn.maparg(lhs, "n", false, true)
    return map.buffer == 1 and map or nil
  end)
end

--- Record typed keys while a buffer has keys that depend on them.
function H.listen()
  local listen = next(H.waiting) ~= nil
  if listen and not H.listening then
    H.listening = api.nvim_create_namespace("parley.keys")
    vim.on_key(function(_, typed)
      H.typed = typed
      if H.last and typed and typed ~= "" and typed ~= H.last.typed then
        H.last = nil
      end
    end, H.listening)
  elseif not listen and H.listening then
    vim.on_key(nil, H.listening)
    H.listening = nil
  end
end

function H.settings()
  local known = require("parley.known").keys
  local set = require("parley.host").setting("keys")
  local keys = vim.tbl_extend("force", known, type(set) == "table" and set or {})
  local choices = keys.choices
  if type(choices) ~= "table" then
    choices = { enabled = choices ~= false }
  end
  keys.choices = vim.tbl_extend("force", known.choices, choices)
  return keys
end

return M
