--- Draws a chat's pictures with another plugin: the pictures in the windows, up to a limit. The
--- host determines which pictures the chat has, and checks their files.
local M = {}

local api = vim.api
local H = { chats = {}, draws = {} }

-- In order of preference.
local names = { "snacks", "image.nvim" }
local most = 8 -- per window
local width = 80

---@class parley.Pictures
---@field tick integer the changedtick of the text with these rows
---@field rows { [1]: integer, [2]: string }[] row and path of each picture, in order
---@field files table<string, string> the file for each path that the host has checked, or ""
---@field drawn table<string, { win: integer, row: integer, path: string, close: fun() }>

--- Receive the pictures that the host found in the text of `tick`, and draw the pictures in the
--- windows.
---@param rows { [1]: integer, [2]: string }[]
function M.learn(buf, tick, rows)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local chat = H.chats[buf]
  H.chats[buf] = { rows = rows, tick = tick, files = {}, drawn = chat and chat.drawn or {} }
  M.update(buf)
end

--- Draw the pictures in the windows, and remove pictures that are far away or no longer in the
--- text.
function M.update(buf)
  local chat = H.chats[buf]
  if not chat or chat.tick ~= api.nvim_buf_get_changedtick(buf) then
    return -- the host will read the text again
  end
  local name, wanted, unknown = H.plugin(), {}, {}
  for _, win in ipairs(name and vim.fn.win_findbuf(buf) or {}) do
    for _, picture in ipairs(H.near(win, chat.rows)) do
      local key =
        table.concat({ H.draws[name].is_for_all and 0 or win, picture.row, picture.path }, " ")
      if chat.drawn[key] or picture.is_inside then
        wanted[key] = { win = win, row = picture.row, path = picture.path }
        if not chat.drawn[key] and not chat.files[picture.path] then
          unknown[picture.path] = true
        end
      end
    end
  end
  for key, picture in pairs(chat.drawn) do
    if not wanted[key] then
      chat.drawn[key] = nil
      pcall(picture.close)
    end
  end
  for key, picture in pairs(wanted) do
    local file = chat.files[picture.path]
    if file and file ~= "" and not chat.drawn[key] then
      picture.close = H.draw(name, buf, picture, file)
      chat.drawn[key] = picture.close and picture or nil
    end
  end
  if next(unknown) then
    local paths = vim.tbl_keys(unknown)
    require("parley.host").mention("pictures", {
      buf = buf,
      name = api.nvim_buf_get_name(buf),
      paths = paths,
    })
  end
end

--- Update the pictures when the window layout is final.
function M.update_soon(buf)
  if H.chats[buf] then
    vim.schedule(function()
      if api.nvim_buf_is_loaded(buf) then
        M.update(buf)
      end
    end)
  end
end

--- Receive the host's result: the place of each file whose content matches its name.
---@param files table<string, string>
function M.put(buf, files)
  local chat = H.chats[buf]
  if chat and api.nvim_buf_is_loaded(buf) then
    chat.files = vim.tbl_extend("force", chat.files, files)
    M.update(buf)
  end
end

function M.forget(buf)
  for _, picture in pairs(H.chats[buf] and H.chats[buf].drawn or {}) do
    pcall(picture.close)
  end
  H.chats[buf] = nil
end

--- The plugin that draws; nil if there is none.
---@return string?
function H.plugin()
  local set = require("parley.host").setting("pictures") or "auto"
  return vim.iter(set == "auto" and names or { set }):find(function(name)
    return H.draws[name] ~= nil and H.draws[name].is_there()
  end)
end

--- The pictures in a window, and the pictures within a window's height above and below, which stay
--- if they are drawn. Beyond the limit, only the first pictures count.
function H.near(win, rows)
  local info, low, near = vim.fn.getwininfo(win)[1], 1, {}
  local first, last, high = info.topline - 1 - info.height, info.botline - 1 + info.height, #rows
  while low <= high do
    local middle = math.floor((low + high) / 2)
    if rows[middle][1] < first then
      low = middle + 1
    else
      high = middle - 1
    end
  end
  for i = low, #rows do
    local row, path = unpack(rows[i])
    if row > last then
      break
    end
    local is_inside = row >= info.topline - 2 and row < info.botline
    table.insert(near, { row = row, path = path, is_inside = is_inside })
  end
  table.sort(near, function(a, b)
    if a.is_inside == b.is_inside then
      return a.row < b.row
    end
    return a.is_inside
  end)
  return vim.list_slice(near, 1, most)
end

--- Draw a picture; the returned function removes it. A failure is reported once.
function H.draw(name, buf, picture, file)
  local ok, close = pcall(H.draws[name].draw, buf, picture, file)
  if not ok and not H.has_said then
    H.has_said = true
    local why = vim.split(tostring(close), "\n")[1]:gsub("^.-:%d+: ", "")
    require("parley.host").message(("%s cannot draw a picture: %s"):format(name, why), "warn")
  end
  return ok and close or nil
end

-- https://github.com/folke/snacks.nvim/blob/main/lua/snacks/image/placement.lua, read on
-- 2026-11-23: `placement.new(buf, src, opts)`, where `opts.pos` is (1,0)-indexed, draws in all
-- windows of a buffer. Without `inline`, it would replace the text; `terminal.env().placeholders`
-- tells whether the terminal supports that.
H.draws.snacks = {
  is_for_all = true,
  is_there = function()
    local snacks = require("parley.plugins").get("snacks")
    if not snacks or vim.tbl_get(snacks, "config", "image", "enabled") ~= true then
      return false
    end
    local ok, can = pcall(function()
      return snacks.image.supports_terminal() and snacks.image.terminal.env().placeholders
    end)
    return ok and can == true
  end,
  draw = function(buf, picture, file)
    local line = api.nvim_buf_get_lines(buf, picture.row, picture.row + 1, false)[1] or ""
    if vim.b[buf].snacks_image_attached and line:find(picture.path, 1, true) then
      return nil -- snacks draws Markdown links itself, but not inside a fold
    end
    local placement = require("snacks").image.placement.new(buf, file, {
      pos = { picture.row + 1, 0 },
      inline = true,
      max_width = width,
      max_height = math.max(math.floor(vim.o.lines / 2), 1),
      auto_resize = true,
    })
    return function()
      placement:close()
    end
  end,
}

-- https://github.com/3rd/image.nvim/blob/master/README.md, read on 2026-11-23: `from_file(path,
-- opts)`, `render()`, `clear()`. Its own Markdown integration also passes `render_offset_top`;
-- otherwise the picture would cover the line instead of being below it
-- (lua/image/utils/document.lua). Its pictures below one line cover each other, so there is at most
-- one.
H.draws["image.nvim"] = {
  is_there = function()
    local image = require("parley.plugins").get("image")
    return image ~= nil and vim.is_callable(image.from_file)
  end,
  draw = function(buf, picture, file)
    local plugin = require("image")
    for _, other in ipairs(plugin.get_images({ window = picture.win, buffer = buf })) do
      if
        other.window == picture.win
        and other.buffer == buf
        and other.geometry.y == picture.row
      then
        return nil -- also if image.nvim draws Markdown links itself
      end
    end
    local image = plugin.from_file(file, {
      window = picture.win,
      buffer = buf,
      with_virtual_padding = true,
      inline = true,
      render_offset_top = 1,
      namespace = "parley",
      x = 0,
      y = picture.row,
    })
    if image then
      image:render()
    end
    return image and function()
      image:clear()
    end
  end,
}

return M
