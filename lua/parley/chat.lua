--- Which buffers are chats, and what that means for them.
local M = {}

local no_chat = "this is not a chat: :ParleyChatNew opens one"
local H = { attached = {}, on_disk = {}, leaving = {} }

--- The folder of chats.
---@return string
function M.dir()
  local set = require("parley.host").setting("chat_dir")
  if type(set) == "string" and set ~= "" then
    return vim.fs.normalize(vim.fn.fnamemodify(vim.fn.expand(set), ":p"))
  end
  return require("parley.known").chats()
end

--- Whether a line starts a question.
function M.is_question(line)
  return require("parley.known").is(line, "question")
end

--- Whether a Markdown buffer is a chat: by its folder, or by a question near its top.
function M.is_chat(buf)
  if vim.bo[buf].buftype ~= "" then
    return false
  end
  if M.in_dir(buf) then
    return true
  end
  return vim.iter(vim.api.nvim_buf_get_lines(buf, 0, 100, false)):any(M.is_question)
end

--- Whether the buffer's file is in the folder of chats.
function M.in_dir(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return name ~= "" and vim.startswith(H.real(name), H.real(M.dir()) .. "/")
end

--- A Markdown file was opened.
function M.opened(buf)
  -- Modelines are looked for after this event, and in a chat a model or a tool may have said them.
  if M.is_chat(buf) then
    vim.bo[buf].modeline = false
  end
  -- Later, so that ours come after the filetype's own maps and highlighting.
  vim.schedule(function()
    if vim.api.nvim_buf_is_loaded(buf) and M.is_chat(buf) then
      if M.is_attached(buf) then
        require("parley.keys").chat(buf) -- the filetype's maps came over them
        require("parley.completion").chat(buf)
      end
      M.attach(buf)
    end
  end)
end

--- Make a buffer a chat; again does no harm.
function M.attach(buf)
  if H.attached[buf] then
    vim.schedule(function()
      if H.attached[buf] then
        require("parley.highlight").chat(buf)
      end
    end)
    return
  end
  H.leave(buf)
  H.attached[buf], H.on_disk[buf] = true, H.stamp(buf)
  vim.b[buf].parley_status, vim.b[buf].parley_waiting = "", 0
  H.last = vim.api.nvim_get_current_buf() == buf and buf or H.last
  require("parley.keys").chat(buf)
  require("parley.completion").chat(buf)
  require("parley.highlight").chat(buf)
  H.set_windows(buf)
  H.watch(buf)
  require("parley.changes").follow(buf)
  local host = require("parley.host")
  if host.start({ quiet = true }) then
    host.mention("attach", H.introduction(buf))
  end
  require("parley.status").emit("ParleyChat", { buf = buf })
end

--- A paragraph is one line, and breaks between words. A result is one, too, and may be longer than the
--- window: without 'smoothscroll', what comes below it would stand on an empty screen. Whoever has set such
--- an option before the first chat keeps it; what is set here counts, too.
function H.set_windows(buf)
  H.options = H.options
    or vim.tbl_filter(function(option)
      return not vim.api.nvim_get_option_info2(option, {}).was_set
    end, { "smoothscroll", "linebreak" })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    for _, option in ipairs(H.options) do
      vim.wo[win][0][option] = true
    end
  end
end

--- Whether a buffer is a chat that Parley knows of; 0 is the current one.
function M.is_attached(buf)
  return H.attached[buf == 0 and vim.api.nvim_get_current_buf() or buf] == true
end

--- All chats, as the host is told of them.
function M.all()
  return vim.tbl_map(H.introduction, vim.tbl_keys(H.attached))
end

--- The settings have changed: the keys, and what is a chat by its folder.
function M.settings_changed()
  for buf in pairs(H.attached) do
    require("parley.keys").chat(buf)
    require("parley.highlight").chat(buf)
  end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if not H.attached[buf] and vim.bo[buf].filetype == "markdown" then
      M.opened(buf)
    end
  end
end

--- Hold the line of the cursor in the current buffer, for something that is asked of it.
---@return integer handle
function M.hold()
  local handles, buf = require("parley.handle"), vim.api.nvim_get_current_buf()
  local handle = handles.open(buf, vim.api.nvim_win_get_cursor(0)[1] - 1)
  handles.watch(handle)
  return handle
end

--- Ask the host for something in the chat of the current buffer, at its cursor.
---@param method string
---@param arguments table
---@param opts? { anywhere?: boolean, handle?: integer } anywhere: where there is no chat, it is asked all the
---same; handle: what was held before, instead of the cursor's line
function M.ask(method, arguments, opts)
  local handles, held = require("parley.handle"), nil
  if opts and opts.handle then
    local lost
    held, lost = handles.get(opts.handle)
    if not held then
      handles.close(opts.handle)
      require("parley.host").message(lost and lost.gone or "", "warn")
      return
    end
  end
  local buf = held and held.buf or vim.api.nvim_get_current_buf()
  if opts and opts.anywhere and not M.is_attached(buf) then
    require("parley.host").notify(method, arguments)
    return
  elseif vim.bo[buf].buftype ~= "" then
    require("parley.host").message(no_chat, "warn")
    return
  end
  M.attach(buf)
  arguments.buf, arguments.name = buf, vim.api.nvim_buf_get_name(buf)
  if
    vim.list_contains(
      { "respond", "choose", "compact", "details", "request", "prompt", "image", "bring", "fork" },
      method
    )
  then
    arguments.handle = held and held.id or M.hold()
    arguments.row = held and handles.row(held, "anchor") or vim.api.nvim_win_get_cursor(0)[1] - 1
    arguments.cwd = vim.fn.getcwd()
  end
  if method == "choose" then
    arguments.seen = require("parley.seen").times(buf)
  end
  require("parley.host").notify(method, arguments)
end

--- Have the chat of the current buffer written as an HTML page.
---@param path string "" means beside the chat's file
---@param force boolean
function M.export(path, force)
  -- The command has expanded it already; once more, and a name with backticks would be run.
  local target = path ~= "" and path or vim.fn.expand("%:p:r") .. ".html"
  M.ask("export", { path = vim.fn.fnamemodify(target, ":p"), force = force })
end

--- Open a new chat, ready to type in. Its file is made once it is known where chats are: at once, unless the
--- host has yet to read a file of settings.
---@param topic string
---@param mods? table the modifiers of the command
function M.new(topic, mods)
  require("parley.window").new(mods)
  local buf = vim.api.nvim_get_current_buf()
  local lines =
    { "---", "topic: " .. H.yaml(topic), "---", "", require("parley.known").markers.question .. ": " }
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].filetype = "markdown"
  M.attach(buf)
  H.type_at(#lines)
  local host, window = require("parley.host"), require("parley.window")
  host.when_ready(function()
    window.try(H.make_file, buf)
    host.notify("made", H.introduction(buf))
    H.show_installing(buf)
  end)
end

--- Open a chat, and put a question and lines of this buffer into it.
---@param topic string of a new chat
---@param question string "" for none; else it is asked
---@param opts parley.Opening
---@param buf? integer a chat there is; without it, a new one is opened
function M.open(topic, question, opts, buf)
  local quote = opts.lines and H.quote(opts.lines[1], opts.lines[2])
  if buf then
    require("parley.window").go(buf, opts.mods)
  else
    M.new(topic, opts.mods)
  end
  local last = vim.api.nvim_buf_line_count(0)
  local is_empty = H.is_empty_question(vim.fn.getline(last))
  if question ~= "" then
    vim.cmd.stopinsert()
  end
  if question ~= "" or (quote and not is_empty) then
    vim.api.nvim_win_set_cursor(0, { last, 0 })
  elseif quote then
    H.type_at(last) -- what is typed till the lines come goes below them
  end
  if quote or question ~= "" then
    M.ask("bring", { question = question, quote = quote, first = is_empty and question == "" })
  end
end

--- What was to be put into a chat is there, down to a row: it is asked, or the user goes on there, unless
--- something was typed meanwhile.
function M.brought(id, row, asks)
  local handles = require("parley.handle")
  local handle = handles.get(id)
  if not handle then
    return
  end
  row = require("parley.rows").within(handle.buf, row)
  if asks then
    M.ask("respond", { regenerate = false }, { handle = handles.open(handle.buf, row) })
  elseif
    handle.win == vim.api.nvim_get_current_win()
    and handles.unmoved(handle)
    and not handles.busy(handle.buf, id) -- it is asked already
  then
    H.type_at(row + 1)
  end
end

--- The fork of a chat is written: it is opened, unless the user has gone elsewhere.
function M.forked(id, path)
  local handle, window = require("parley.handle").get(id), require("parley.window")
  local mods = window.expected("fork")
  if
    not handle
    or handle.win ~= vim.api.nvim_get_current_win()
    or not require("parley.handle").unmoved(handle)
  then
    require("parley.host").message(("the fork is %s"):format(vim.fn.fnamemodify(path, ":~:.")))
    return
  end
  window.try(function()
    local buf = vim.fn.bufadd(path)
    vim.bo[buf].buflisted = true
    window.go(buf, mods)
    if vim.bo[buf].filetype ~= "markdown" then
      vim.bo[buf].filetype = "markdown"
    end
    M.attach(buf)
    local origin = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(handle.buf), ":t")
    local text = "this is a copy of %s, down to the exchange under the cursor"
    require("parley.host").message(text:format(origin))
    local last = vim.api.nvim_buf_line_count(buf)
    if H.is_empty_question(vim.fn.getline(last)) then
      H.type_at(last)
    else
      vim.api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
    end
  end)
end

--- The chat that was used last, where nothing runs and nothing waits in it; nil if there is none.
---@return integer?
function M.last()
  local buf = H.last
  local is_free = buf
    and H.attached[buf]
    and vim.bo[buf].modifiable
    and not require("parley.handle").busy(buf)
    and not require("parley.keys").waits(buf)
  return is_free and buf or nil
end

--- Go to the empty question at the end of the buffer, which is a chat from then on; where there is none, it
--- is written.
function M.question()
  local buf = vim.api.nvim_get_current_buf()
  if vim.bo[buf].buftype ~= "" then
    require("parley.host").message(no_chat, "warn")
    return
  end
  local last = vim.fn.prevnonblank("$")
  if not H.is_empty_question(vim.fn.getline(last)) then
    local question = require("parley.known").markers.question .. ": "
    local is_apart = last < vim.api.nvim_buf_line_count(buf)
    local from = last == 0 and 0 or -1
    vim.api.nvim_buf_set_lines(buf, from, -1, true, is_apart and { question } or { "", question })
    last = vim.api.nvim_buf_line_count(buf)
  end
  M.attach(buf)
  H.type_at(last)
end

--- The host is gone: nothing runs or waits any more.
function M.host_ended()
  for buf in pairs(H.attached) do
    require("parley.status").show(buf, "")
    require("parley.status").waiting(buf, 0)
    require("parley.view").clear(buf)
    require("parley.queue").remove(buf)
  end
  require("parley.ask").withdraw()
  require("parley.changes").host_ended()
  require("parley.handle").close_all()
end

--- A turn has ended: keep what it wrote, where the file is ours and nobody else has written to it.
function M.keep(buf)
  if
    not vim.api.nvim_buf_is_loaded(buf)
    or not vim.bo[buf].modified
    or vim.bo[buf].readonly
    or not M.in_dir(buf)
  then
    return
  elseif not vim.deep_equal(H.stamp(buf), H.on_disk[buf]) then
    -- `:update` would ask whether to overwrite it, in a prompt that `:silent` hides.
    local text =
      "the file was changed outside of this buffer and is not saved: :w! keeps this text, :e! that one"
    require("parley.host").message(text, "warn")
    return
  end
  vim.api.nvim_buf_call(buf, function()
    pcall(vim.cmd, "silent! noautocmd lockmarks update")
  end)
  H.on_disk[buf] = H.stamp(buf)
end

--- When and how large a buffer's file was last written, nil if there is none.
function H.stamp(buf)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf))
  return stat and { stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino }
end

function H.introduction(buf)
  return { buf = buf, name = vim.api.nvim_buf_get_name(buf) }
end

function H.real(path)
  return vim.uv.fs_realpath(path) or vim.fs.normalize(path)
end

--- Lines of the current buffer, as the host quotes them.
function H.quote(first, last)
  return {
    path = require("parley.context").name(0),
    first = first,
    lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false),
    language = vim.bo.filetype,
  }
end

--- Whether a line starts a question in which nothing is asked yet.
function H.is_empty_question(line)
  return M.is_question(line) and line:match("^[^:]*:%s*$") ~= nil
end

--- Put the cursor at the end of a line, ready to type if new chats are.
function H.type_at(row)
  vim.api.nvim_win_set_cursor(0, { row, #vim.fn.getline(row) })
  local set = require("parley.host").setting("start_insert")
  if set == nil and require("parley.known").start_insert or set == true then
    vim.cmd.startinsert({ bang = true })
  end
end

--- In Normal mode the cursor stands on the blank of an empty question: |i| there is to type behind it.
function H.type_behind()
  local at, line = vim.api.nvim_win_get_cursor(0), vim.api.nvim_get_current_line()
  if vim.v.insertmode == "i" and at[2] == #line - 1 and line:sub(-1) == " " and H.is_empty_question(line) then
    local before = vim.wo.virtualedit
    vim.wo.virtualedit = "onemore"
    vim.api.nvim_win_set_cursor(0, { at[1], #line })
    vim.wo.virtualedit = before
    vim.api.nvim_set_vvar("char", " ") -- else the cursor would be put back
  end
end

--- Make the file of a new chat, which only its user can read.
function H.make_file(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.api.nvim_buf_get_name(buf) ~= "" then
    return
  end
  local dir = M.dir()
  local ok, why = pcall(vim.fn.mkdir, dir, "p", tonumber("700", 8))
  if not ok then
    error(("cannot make the folder of chats %s: %s"):format(dir, why), 0)
  end
  local path = H.new_path(dir)
  vim.api.nvim_buf_set_name(buf, path)
  -- Vim remembers the mode of what it writes: one changed later would be a change by another program.
  vim.uv.fs_close(assert(vim.uv.fs_open(path, "wx", tonumber("600", 8))))
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("silent noautocmd write!")
  end)
  H.on_disk[buf] = H.stamp(buf)
end

--- While the Python environment is made, the chat that had it begun says so.
function H.show_installing(buf)
  local install, status = require("parley.install"), require("parley.status")
  if not install.is_busy() or not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local handles = require("parley.handle")
  local handle = handles.open(buf, vim.api.nvim_buf_line_count(buf) - 1)
  status.show(buf, "Making the Python environment (once; up to a minute)...", handle)
  install.run({
    done = function()
      status.show(buf, "")
      handles.close(handle)
    end,
  })
end

--- A free file name for now.
function H.new_path(dir)
  local stem = vim.fs.joinpath(dir, os.date("%Y-%m-%d.%H-%M-%S") --[[@as string]])
  local path, n = stem .. ".md", 1
  while vim.uv.fs_stat(path) or vim.fn.bufexists(path) == 1 do
    n = n + 1
    path = ("%s-%d.md"):format(stem, n)
  end
  return path
end

--- Text as a YAML scalar on one line; JSON strings are YAML.
function H.yaml(text)
  local plain = text:match("^[%w][%w _.,;()/+-]*$") and not text:match("%s$") and not text:match("^%d")
  local word = text:lower()
  if plain and not vim.list_contains({ "true", "false", "null", "yes", "no", "on", "off" }, word) then
    return text
  end
  return vim.json.encode(text)
end

--- Tell the host when the text changed by other hands than its own, at rest and not at every key.
function H.watch(buf)
  local group = vim.api.nvim_create_augroup("parley.chat." .. buf, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { buffer = buf, group = group, callback = callback })
  end
  on({ "TextChanged", "InsertLeave", "BufWritePost" }, function()
    H.later(buf)
  end)
  on({ "TextChanged" }, function()
    require("parley.edit").undone(buf)
  end)
  on({ "InsertEnter" }, H.type_behind)
  on({ "BufReadPost", "BufWritePost", "FileChangedShellPost", "BufFilePost" }, function()
    H.on_disk[buf] = H.stamp(buf)
  end)
  on({ "BufReadPost", "FileChangedShellPost" }, function()
    require("parley.host").mention("loaded", H.introduction(buf))
  end)
  on({ "BufFilePost" }, function()
    require("parley.host").mention("attach", H.introduction(buf))
  end)
  on({ "BufEnter" }, function()
    H.last = buf
  end)
  on({ "InsertEnter" }, function()
    require("parley.completion").prepare()
  end)
  on({ "BufUnload" }, function()
    H.detach(buf)
  end)
  on({ "BufWinEnter" }, function()
    require("parley.folds").enter(buf)
  end)
  on({ "BufWinLeave" }, function()
    require("parley.folds").leave(buf)
    require("parley.pictures").update_soon(buf)
  end)
  on({ "BufWinEnter" }, function()
    require("parley.view").redraw(buf)
  end)
  -- Of several windows the first one's buffer has the event.
  vim.api.nvim_create_autocmd("WinResized", {
    group = group,
    callback = function()
      if
        vim.iter(vim.v.event.windows):any(function(win)
          return vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == buf
        end)
      then
        require("parley.view").redraw(buf)
      end
    end,
  })
  on({ "WinScrolled", "BufWinEnter", "TabEnter" }, function()
    require("parley.seen").look_soon(buf)
    require("parley.pictures").update_soon(buf)
  end)
  -- What goes from the screen is not seen any more; of a tab page that is left only this is told.
  vim.api.nvim_create_autocmd({ "TabEnter", "WinClosed" }, {
    group = group,
    callback = function()
      require("parley.seen").look_soon(buf)
    end,
  })
end

function H.detach(buf)
  H.attached[buf], H.on_disk[buf] = nil, nil
  pcall(vim.api.nvim_del_augroup_by_name, "parley.chat." .. buf)
  require("parley.status").show(buf, "")
  require("parley.changes").forget(buf)
  require("parley.edit").forget(buf)
  require("parley.view").forget(buf)
  require("parley.highlight").forget(buf)
  require("parley.keys").forget(buf)
  require("parley.handle").unload(buf)
  H.leaving[buf] = true
  vim.schedule(function()
    H.leave(buf)
  end)
end

--- The host is told of a buffer that is gone as soon as it can be said whether it is read anew (|:edit|).
function H.leave(buf)
  if H.leaving[buf] then
    H.leaving[buf] = nil
    require("parley.handle").close_buffer(buf)
    require("parley.host").mention("detach", { buf = buf })
  end
end

--- Let the host look at a chat again, when nothing changed for a while; longer chats wait longer.
function H.later(buf)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local delay = math.max(150, math.min(1500, vim.api.nvim_buf_line_count(buf) / 20))
  vim.defer_fn(function()
    local loaded = H.attached[buf] and vim.api.nvim_buf_is_loaded(buf)
    local seen = tick == require("parley.view").tick(buf)
    if loaded and not seen and vim.api.nvim_buf_get_changedtick(buf) == tick then
      require("parley.host").mention("changed", H.introduction(buf))
    end
  end, delay)
end

return M
