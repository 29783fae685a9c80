--- Completes references after `@@` and prompts after `/` in a chat, for 'omnifunc'.
---
--- Any key may trigger completion, so it never waits: it reads folders up to a limit, and uses the
--- server resources that the host reported last.
local M = {}

local api = vim.api
local own = "v:lua.require'parley.completion'.omni"
local H = {
  batches = 10,
  names = 1000, -- per batch
  pause = 5000, -- milliseconds until the servers are asked again
  resources = {},
  templates = {},
  values = {},
  prompts = {},
}

--- Descriptions of names that are not files; `known.lua` lists the names.
local menus = {
  buffer = "the file you came from, as it is in the editor",
  selection = "the text selected in that file",
  diagnostics = "the diagnostics of that file",
  diff = "unstaged changes",
}

--- Complete references in a chat. Elsewhere in it, the earlier 'omnifunc' still works.
function M.chat(buf)
  if vim.bo[buf].omnifunc ~= own then
    vim.b[buf].parley_omnifunc = vim.bo[buf].omnifunc
    vim.bo[buf].omnifunc = own
  end
end

--- See |complete-functions|.
function M.omni(findstart, base)
  if findstart == 1 then
    H.start, H.find = H.place()
    if H.find == H.items then
      M.prepare(H.base())
    elseif H.find then
      H.prompts = M.prompts()
    else
      M.prepare()
    end
    return H.start or H.before(findstart, base)
  end
  return H.start and H.find(base) or H.before(findstart, base)
end

--- Ask the host for the resources of running servers, and for continuations of a template.
---@param base? string the text typed after `@@`
function M.prepare(base)
  local host, now = require("parley.host"), vim.uv.now()
  if not host.state().channel then
    return
  end
  if not H.last or now - H.last > H.pause then
    H.last = now
    host.mention("resources", {})
  end
  -- Ask again after a while, because a server may have been too slow to reply.
  if base and (base ~= H.asked or now - H.asked_at > H.pause) and H.is_of_template(base) then
    H.asked, H.asked_at = base, now
    host.mention("resource_values", { base = base })
  end
end

--- The prompts that the host reported last. Asks the host again after a while.
function M.prompts()
  local host, now = require("parley.host"), vim.uv.now()
  if not H.listed or now - H.listed > H.pause then
    H.listed = now
    return host.known_prompts()
  end
  return host.prompts_so_far()
end

--- Receive from the host the words that the chat's agent offers for `:ParleyAgent`, and its own
--- commands.
---@param buf integer
---@param words string[] such as mode=plan
---@param commands { name: string, about: string }[]
function M.has_offer(buf, words, commands)
  if api.nvim_buf_is_valid(buf) then
    vim.b[buf].parley_offer = { words = words, commands = commands }
  end
end

--- The words that the current chat's agent offers for `:ParleyAgent`.
---@return string[]
function M.offered()
  return (vim.b.parley_offer or {}).words or {}
end

--- Receive from the host the resources, in the form of references, and the templates, each with its
--- beginning.
function M.has_resources(names, templates)
  H.resources, H.templates = names, templates
  M.again()
end

--- Receive from the host the names that begin with a typed text, and whether each needs more text.
--- The reply to an earlier text may arrive later.
function M.has_values(base, names)
  if base == H.asked then
    H.values = names
    M.again()
  end
end

--- If CTRL-X CTRL-O found nothing and the user has not typed since, show results that come later.
function M.again()
  local is_insert = api.nvim_get_mode().mode:sub(1, 1) == "i"
  if
    not is_insert
    or vim.fn.pumvisible() == 1
    or vim.fn.complete_info({ "mode" }).mode ~= "omni"
  then
    return
  end
  local start, find = H.place()
  if vim.bo.omnifunc ~= own or not start then
    return
  end
  H.prompts = find == H.slashes and require("parley.host").prompts_so_far() or H.prompts
  local items = find(H.base(start))
  if items[1] then
    vim.fn.complete(start + 1, items)
  end
end

--- The text typed after `@@`.
function H.base(start)
  local column = api.nvim_win_get_cursor(0)[2]
  return api.nvim_get_current_line():sub((start or H.start) + 1, column)
end

function H.is_of_template(base)
  return vim.iter(H.templates):any(function(template)
    return vim.startswith(base, template.start)
  end)
end

--- The column where the text to complete begins, and the function that finds its completions; nil
--- if there is nothing to complete.
function H.place()
  local start = H.reference()
  if start then
    return start, H.items
  end
  start = H.slash()
  return start, start and H.slashes
end

--- The column of a `/` that begins a question, if the cursor is in the word after it; else nil.
function H.slash()
  local known, row, column = require("parley.known"), unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  if known.is(line, "question") then
    return H.after_colon(line:sub(1, column))
  end
  local start = line:sub(1, column):match("^()/[^%s]*$")
  for above = row - 2, 0, -1 do
    local text = api.nvim_buf_get_lines(0, above, above + 1, true)[1]
    if text:find("%S") then
      return start and known.is(text, "question") and text:match(":%s*$") and start - 1 or nil
    elseif not start then
      return nil
    end
  end
end

function H.after_colon(before)
  local start = before:match("^[^:]*: ?()/[^%s]*$")
  return start and start - 1 or nil
end

--- The prompts and the commands of the chat's agent whose names begin with the typed text after
--- `/`. A prompt takes precedence over a command with the same name.
function H.slashes(base)
  local items, known = {}, {}
  local function add(list)
    for _, each in ipairs(list) do
      local word = "/" .. each.name
      if vim.startswith(word, base) and not word:find("%s") and not known[word] then
        table.insert(items, { word = word, menu = each.about, dup = 1 })
      end
    end
  end
  add(H.prompts)
  for _, item in ipairs(items) do
    known[item.word] = true
  end
  add((vim.b.parley_offer or {}).commands or {})
  return items
end

--- The column after the `@@` of the reference at the cursor; nil if there is none.
function H.reference()
  local line, column = api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2]
  local before = line:sub(1, column)
  for _, whole in ipairs({ "@@[^@%s]@@", "@@[^@%s][^@]*[^@%s]@@" }) do
    before = before:gsub(whole, function(reference)
      return (" "):rep(#reference)
    end)
  end
  local start, name = before:match(".*@@()([^@]*)$")
  H.is_closed = vim.startswith(line:sub(column + 1), "@@")
  return start and not name:find("^%s") and start - 1 or nil
end

--- The names that begin with the typed text.
function H.items(base)
  local items = {}
  local function add(name, menu, is_open)
    if vim.startswith(name, base) then
      local word = (is_open or H.is_closed) and name or name .. "@@"
      table.insert(items, { word = word, abbr = name, menu = menu, dup = 1 })
    end
  end
  for _, name in ipairs(require("parley.known").live) do
    add(name, menus[name])
  end
  for _, name in ipairs(H.files(base)) do
    local is_folder = vim.endswith(name, "/")
    add(name, is_folder and "folder" or "file", is_folder)
  end
  for _, name in ipairs(H.resources) do
    add(name, "resource")
  end
  local function add_open(name, menu)
    if name ~= base then -- after the beginning, list its values instead
      add(name, menu, true)
    end
  end
  for _, template in ipairs(H.templates) do
    add_open(template.start, template.uri)
  end
  for _, value in ipairs(H.values) do
    local act = value.is_open and add_open or add
    act(value.name, "resource")
  end
  return items
end

--- The files and folders that begin with a path; hidden ones only after their dot, and neither
--- `.git` nor `.env`, which the host does not read.
function H.files(base)
  local dir = base:match("^.*/") or ""
  if not dir:find("^[~/]") and ("/" .. dir):find("/%.git/") then
    return {}
  end
  local is_dotted = base:sub(#dir + 1):find("^%.") ~= nil
  local root = dir:gsub("^~/", (vim.uv.os_homedir() or "") .. "/")
  root = root:find("^/") and root or vim.fn.getcwd() .. "/" .. root
  local names = {}
  for _, entry in ipairs(H.entries(root)) do
    local name = dir .. entry.name
    local kind = entry.type
    local is_offered = entry.name:sub(1, 1) ~= "." or (is_dotted and H.may_be_read(entry.name))
    if is_offered and vim.startswith(name, base) and H.can_be_named(entry.name) then
      if kind == "link" then
        kind = (vim.uv.fs_stat(root .. "/" .. entry.name) or {}).type
      end
      if kind == "directory" or kind == "file" then
        table.insert(names, kind == "directory" and name .. "/" or name)
      end
    end
  end
  table.sort(names)
  return names
end

--- Whether a reference with this name would mean the file, and look like its name.
function H.can_be_named(name)
  return not name:find("^%s")
    and not name:find("%s$")
    and not name:find("[@%c*?%[]")
    and not vim.list_contains(require("parley.known").live, name)
end

--- Whether the host may read a hidden file or folder, once the user agrees.
function H.may_be_read(name)
  return name ~= ".git" and not name:find("^%.env")
end

--- A folder's entries, up to a limit.
function H.entries(root)
  local folder = vim.uv.fs_opendir(root, nil, H.names)
  local entries = {}
  for _ = 1, folder and H.batches or 0 do
    local batch = vim.uv.fs_readdir(folder)
    if not batch then
      break
    end
    vim.list_extend(entries, batch)
  end
  if folder then
    vim.uv.fs_closedir(folder)
  end
  return entries
end

--- Call the earlier completion function; -3 ends the completion silently.
function H.before(findstart, base)
  local name = vim.b.parley_omnifunc or ""
  local call = ("%s(%d, %s)"):format(name, findstart, vim.fn.string(base))
  local ok, value = pcall(api.nvim_eval, name == "" and "-3" or call)
  return ok and value or -3
end

return M
