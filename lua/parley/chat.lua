--- Knows which buffers are chats, and sets them up.
local M = {}

local no_chat = ("this is not a chat: no line starts with %s:. "):format(
  require("parley.known").markers.question
) .. "Go to a chat, or open one with :ParleyChatNew"
local H = { attached = {}, on_disk = {}, leaving = {}, changed = {} }

--- The requests about the exchange at the cursor.
H.at_the_cursor = vim.split(
  "respond choose allow compact details revert review request prompt image bring fork compare apply",
  " "
)

--- The chat folder.
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

--- Whether a question starts on any line.
function H.has_question(buf)
  return vim.iter(vim.api.nvim_buf_get_lines(buf, 0, -1, false)):any(M.is_question)
end

--- Whether the buffer's file is in the chat folder.
function M.in_dir(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return name ~= "" and vim.startswith(H.real(name), H.real(M.dir()) .. "/")
end

--- Set up a newly opened Markdown file, if it is a chat.
function M.opened(buf)
  -- Vim reads modelines after this event; in a chat, a model or tool may have written them.
  if M.is_chat(buf) then
    vim.bo[buf].modeline = false
    require("parley.host").prepare()
  end
  -- Later, because the filetype's own maps and highlighting come first.
  vim.schedule(function()
    if vim.api.nvim_buf_is_loaded(buf) and M.is_chat(buf) then
      if M.is_attached(buf) then
        require("parley.keys").chat(buf) -- the filetype may have replaced them
        require("parley.completion").chat(buf)
      end
      M.attach(buf)
    end
  end)
end

--- Set a buffer up as a chat, unless that is done.
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
  require("parley.mirror").follow(buf)
  require("parley.open_files").watch()
  local host = require("parley.host")
  if host.start({ quiet = true }) then
    host.mention("attach", H.introduction(buf))
  end
  require("parley.status").emit("ParleyChat", { buf = buf })
end

--- Set window options. A paragraph is one line, so break lines between words. A result may be a
--- line that is longer than the window: without 'smoothscroll', the text below it would appear on
--- an empty screen. Leave options that the user set before the first chat.
function H.set_windows(buf)
  H.options = H.options
    or vim.tbl_filter(function(option)
      return not H.was_set(option)
    end, { "smoothscroll", "linebreak" })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    for _, option in ipairs(H.options) do
      vim.wo[win][0][option] = true
    end
  end
end

--- Whether the user has set an option. Neovim's ui2 sets some of them in its own windows only.
function H.was_set(option)
  local info = vim.api.nvim_get_option_info2
  local by_ui = package.loaded["vim._core.ui2"] or package.loaded["vim._extui"]
  return info(option, {}).was_set
    and not (by_ui and info(option, { scope = "global" }).last_set_sid == 0)
end

--- Whether a buffer is a chat known to Parley; 0 is the current buffer.
function M.is_attached(buf)
  return H.attached[buf == 0 and vim.api.nvim_get_current_buf() or buf] == true
end

--- All chats, in the form that the host receives.
function M.all()
  return vim.tbl_map(H.introduction, vim.tbl_keys(H.attached))
end

--- Apply changed settings: the keys, and the chat folder, which determines which files are chats.
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

--- Open a handle at the cursor line of the current buffer, for a request to the host.
---@return integer handle
function M.hold()
  local handles, buf = require("parley.handle"), vim.api.nvim_get_current_buf()
  local handle = handles.open(buf, vim.api.nvim_win_get_cursor(0)[1] - 1)
  handles.watch(handle)
  return handle
end

--- Send a request to the host for the chat of the current buffer, at its cursor.
---@param method string
---@param arguments table
---@param opts? { anywhere?: boolean, last?: boolean, handle?: integer } anywhere: also outside
---chats; last: outside chats, for the chat used last; handle: an open handle, instead of a new one at
---the cursor's line. A buffer with a question becomes a chat.
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
  elseif opts and opts.last and not M.is_attached(buf) and H.attached[H.last] then
    buf = H.last
  end
  if vim.bo[buf].buftype ~= "" or not M.is_attached(buf) and not H.has_question(buf) then
    require("parley.host").message(no_chat, "warn")
    return
  end
  require("parley.messages").clear()
  M.attach(buf)
  arguments.buf, arguments.name = buf, vim.api.nvim_buf_get_name(buf)
  if vim.list_contains(H.at_the_cursor, method) then
    arguments.handle = held and held.id or M.hold()
    arguments.row = held and handles.row(held, "anchor") or vim.api.nvim_win_get_cursor(0)[1] - 1
    arguments.cwd = vim.fn.getcwd()
  end
  if method == "choose" then
    arguments.seen = arguments.seen or require("parley.sightings").times(buf)
  end
  require("parley.host").notify(method, arguments)
end

--- Write the current buffer's chat as an HTML page.
---@param path string "" means next to the chat's file
---@param force boolean
function M.export(path, force)
  -- Do not expand the path again: the command has done so, and backticks in it would be run.
  local target = path ~= "" and path or vim.fn.expand("%:p:r") .. ".html"
  M.ask("export", { path = vim.fn.fnamemodify(target, ":p"), force = force })
end

--- Open a new chat, ready for typing. Its file is created when the chat folder is known: at once,
--- unless the host must read a settings file first.
---@param topic string
---@param mods? table the command's modifiers
function M.new(topic, mods)
  require("parley.window").new(mods)
  local buf = vim.api.nvim_get_current_buf()
  local lines = {
    "---",
    "topic: " .. H.yaml(topic),
    "---",
    "",
    require("parley.known").markers.question .. ": ",
  }
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

--- Open a chat, and put a question and lines from this buffer into it.
---@param topic string the topic for a new chat
---@param question string the question to ask; "" for none
---@param opts parley.Opening
---@param buf? integer an existing chat; without it, a new chat is opened
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
    H.type_at(last) -- text that the user types before the lines arrive goes below them
  end
  if quote or question ~= "" then
    local first = is_empty and question == ""
    M.ask("bring", { question = question, quote = quote, first = first, rewrite = opts.rewrite })
  end
end

--- The content for a chat has arrived, and ends at a row. Ask the question, or put the cursor there
--- for the user to continue, unless the user has typed since.
---@param rewrite? integer the rewrite that the question is for
function M.brought(id, row, asks, rewrite)
  local handles = require("parley.handle")
  local handle = handles.get(id)
  if not handle then
    return
  end
  row = require("parley.buffer_rows").within(handle.buf, row)
  if rewrite then
    require("parley.rewrite").asked(rewrite, handle.buf, row)
  end
  if asks then
    M.ask("respond", { regenerate = false }, { handle = handles.open(handle.buf, row) })
  elseif
    handle.win == vim.api.nvim_get_current_win()
    and handles.unmoved(handle)
    and not handles.busy(handle.buf, id) -- its question is already being asked
  then
    H.type_at(row + 1)
  end
end

--- Open the new fork of a chat, unless the user has gone elsewhere.
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
    local text = "this is a copy of %s, up to the exchange under the cursor"
    require("parley.host").message(text:format(origin))
    local last = vim.api.nvim_buf_line_count(buf)
    if H.is_empty_question(vim.fn.getline(last)) then
      H.type_at(last)
    else
      vim.api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
    end
  end)
end

--- The last used chat without a running turn or waiting calls; nil if there is none.
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

--- Go to the empty question at the end of the buffer, or write an empty question. From then on, the
--- buffer is a chat.
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

--- The host has exited: end everything that ran or waited.
function M.host_ended()
  for buf in pairs(H.attached) do
    require("parley.status").show(buf, "")
    require("parley.status").waiting(buf, 0)
    require("parley.view").clear(buf)
    require("parley.queue").remove(buf)
  end
  require("parley.dialogs").withdraw()
  require("parley.mirror").host_ended()
  require("parley.handle").close_all()
end

--- Save a turn's text, if the settings allow it and no other program has written to the file.
function M.keep(buf)
  if
    not vim.api.nvim_buf_is_loaded(buf)
    or not vim.bo[buf].modified
    or vim.bo[buf].readonly
    or not H.is_saved(buf)
  then
    return
  elseif not vim.deep_equal(H.stamp(buf), H.on_disk[buf]) then
    -- `:update` would ask whether to overwrite the file, in a prompt that `:silent` hides.
    require("parley.host").message(H.conflict(buf), "warn")
    return
  end
  local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
    require("parley.messages").silently("noautocmd lockmarks update")
  end)
  H.on_disk[buf] = H.stamp(buf)
  if not ok then
    local reason = require("parley.window").reason(why)
    require("parley.host").message(("not saved: %s. :w tries again"):format(reason), "warn")
  end
end

--- Whether Parley saves a chat after a turn: its own chats, and with `save = "always"` every chat
--- in a file.
function H.is_saved(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local is_file = name ~= "" and vim.bo[buf].buftype == "" and not name:find("^%a[%w+.-]*://")
  return M.in_dir(buf) or (is_file and require("parley.host").setting("save") == "always")
end

--- A message that says why a buffer is not saved, and whether its answer or the file is newer.
function H.conflict(buf)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf))
  if not stat then
    return "not saved: this chat's file was deleted. :w writes it again"
  end
  local text = "not saved: another program wrote this file at " .. os.date("%H:%M", stat.mtime.sec)
  if require("parley.edit").written(buf) > stat.mtime.sec + stat.mtime.nsec / 1e9 then
    return text .. ". The answer here is newer: :w! keeps it, :e! loads the file's text"
  end
  return text .. ", after the last answer here. :e! loads the file's text, :w! keeps this text"
end

--- The modification time and size of a buffer's file; nil if there is no file.
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

--- Lines in the current buffer, in the form that the host expects for a quote.
function H.quote(first, last)
  return {
    path = require("parley.context").name(0),
    first = first,
    lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false),
    language = vim.bo.filetype,
  }
end

--- Whether a line starts an empty question.
function H.is_empty_question(line)
  return M.is_question(line) and line:match("^[^:]*:%s*$") ~= nil
end

--- Put the cursor at the end of a line, ready to type if new chats start in Insert mode.
function H.type_at(row)
  vim.api.nvim_win_set_cursor(0, { row, #vim.fn.getline(row) })
  local set = require("parley.host").setting("start_insert")
  if set == nil and require("parley.known").start_insert or set == true then
    vim.cmd.startinsert({ bang = true })
  end
end

--- In Normal mode, put the cursor on the blank of an empty question, so that |i| types after it.
function H.type_behind()
  local at, line = vim.api.nvim_win_get_cursor(0), vim.api.nvim_get_current_line()
  if
    vim.v.insertmode == "i"
    and at[2] == #line - 1
    and line:sub(-1) == " "
    and H.is_empty_question(line)
  then
    local before = vim.wo.virtualedit
    vim.wo.virtualedit = "onemore"
    vim.api.nvim_win_set_cursor(0, { at[1], #line })
    vim.wo.virtualedit = before
    vim.api.nvim_set_vvar("char", " ") -- otherwise Neovim would restore the cursor
  end
end

--- Create the file of a new chat, which only the user can read.
function H.make_file(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.api.nvim_buf_get_name(buf) ~= "" then
    return
  end
  local dir = M.dir()
  local ok, why = pcall(vim.fn.mkdir, dir, "p", tonumber("700", 8))
  if not ok then
    error(("cannot create the chat folder %s: %s"):format(dir, why), 0)
  end
  local path = H.new_path(dir)
  vim.api.nvim_buf_set_name(buf, path)
  -- Create the file with its mode, because Vim would take a later change of the mode for another
  -- program's.
  local file, refusal = vim.uv.fs_open(path, "wx", tonumber("600", 8))
  if not file then
    local reason = refusal:match("^%u+: ([^:]+)") or refusal
    error(("cannot create a chat in %s: %s. Use :saveas FILE"):format(dir, reason), 0)
  end
  vim.uv.fs_close(file)
  vim.api.nvim_buf_call(buf, function()
    require("parley.messages").silently("noautocmd write!")
  end)
  H.on_disk[buf] = H.stamp(buf)
end

--- Show in the chat that the Python environment is being created.
function H.show_installing(buf)
  local install, status = require("parley.install"), require("parley.status")
  if not install.is_busy() or not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local handles = require("parley.handle")
  local handle = handles.open(buf, vim.api.nvim_buf_line_count(buf) - 1)
  status.show(buf, "Creating the Python environment (once; takes up to a minute)...", handle)
  install.run({
    done = function()
      status.show(buf, "")
      handles.close(handle)
    end,
  })
end

--- A free file name for the current time.
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
  local plain = text:match("^[%w][%w _.,;()/+-]*$")
    and not text:match("%s$")
    and not text:match("^%d")
  local word = text:lower()
  if
    plain and not vim.list_contains({ "true", "false", "null", "yes", "no", "on", "off" }, word)
  then
    return text
  end
  return vim.json.encode(text)
end

--- Tell the host about changes that it did not make, when typing pauses instead of at every key.
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
  -- With several windows, the event has the first one's buffer.
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
    require("parley.sightings").look_soon(buf)
    require("parley.pictures").update_soon(buf)
  end)
  vim.api.nvim_create_autocmd({ "VimResume", "ShellCmdPost" }, {
    group = group,
    callback = function()
      require("parley.sightings").restart(buf)
    end,
  })
  -- Calls that leave the screen no longer count as seen; when the user leaves a tab page, this is
  -- the only event.
  vim.api.nvim_create_autocmd({ "TabEnter", "WinClosed" }, {
    group = group,
    callback = function()
      require("parley.sightings").look_soon(buf)
    end,
  })
end

function H.detach(buf)
  H.attached[buf], H.on_disk[buf] = nil, nil
  pcall(vim.api.nvim_del_augroup_by_name, "parley.chat." .. buf)
  require("parley.status").show(buf, "")
  require("parley.mirror").forget(buf)
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

--- Tell the host that a buffer is gone, when it is clear whether it is reloaded (|:edit|).
function H.leave(buf)
  if H.leaving[buf] then
    H.leaving[buf] = nil
    require("parley.handle").close_buffer(buf)
    require("parley.host").mention("detach", { buf = buf })
  end
end

--- Have the host read a chat again after a pause in its changes; longer for longer chats. One timer
--- runs, however many changes there are.
function H.later(buf)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local delay = math.max(150, math.min(1500, vim.api.nvim_buf_line_count(buf) / 20))
  local is_running = H.changed[buf] ~= nil
  local change = { tick = vim.api.nvim_buf_get_changedtick(buf), due = vim.uv.now() + delay }
  H.changed[buf] = change
  if not is_running then
    H.after(buf, delay)
  end
end

function H.after(buf, delay)
  vim.defer_fn(function()
    local change = H.changed[buf]
    local left = change and change.due - vim.uv.now() or 0
    if left > 0 then
      H.after(buf, left)
      return
    end
    H.changed[buf] = nil
    local loaded = H.attached[buf] and vim.api.nvim_buf_is_loaded(buf)
    if not change or not loaded or change.tick == require("parley.view").tick(buf) then
      return
    elseif vim.api.nvim_buf_get_changedtick(buf) == change.tick then
      require("parley.host").mention("changed", H.introduction(buf))
    end
  end, delay)
end

return M
