--- Pages beside a chat: scratch buffers, floats and lists to choose from.
local M = {}

local api = vim.api

--- Show lines in a scratch buffer, in a window of its own; a page of the same name is shown anew.
---@param name string
---@param lines string[]
---@param filetype string
---@return integer buf
function M.scratch(name, lines, filetype)
  local buf = M.buffer(name)
  if buf == -1 then
    buf = api.nvim_create_buf(false, true)
    api.nvim_buf_set_name(buf, "parley://" .. name)
    vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, desc = "Parley: close this page" })
  end
  M.fill(buf, lines)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = filetype
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    api.nvim_set_current_win(win)
  else
    vim.cmd.split()
    api.nvim_win_set_buf(0, buf)
  end
  api.nvim_win_set_cursor(0, { 1, 0 })
  return buf
end

--- Give a page other lines.
function M.fill(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].modifiable = false
end

--- Close a page.
---@param name string
function M.close(name)
  local win = vim.fn.bufwinid(M.buffer(name))
  if win ~= -1 then
    pcall(api.nvim_win_close, win, true)
  end
end

--- Show lines of Markdown in a float at the cursor; it goes when the cursor moves, `K` again enters it.
function M.float(lines)
  local _, win = vim.lsp.util.open_floating_preview(lines, "markdown", {
    border = "rounded",
    focus_id = "parley",
    max_width = math.min(100, vim.o.columns - 6),
    max_height = math.floor(vim.o.lines * 0.6),
    wrap = true,
  })
  -- What does not fit is said to be there: nobody decides on half of a call without knowing it.
  local below = api.nvim_win_text_height(win, {}).all - api.nvim_win_get_height(win)
  if below > 0 then
    local rows = below == 1 and "1 row" or below .. " rows"
    api.nvim_win_set_config(win, { footer = (" +%s: K again goes in "):format(rows), footer_pos = "right" })
  end
end

--- Let the user pick an agent.
function M.pick_agent(buf, agents, current)
  vim.ui.select(agents, {
    prompt = "Agent",
    format_item = function(agent)
      return agent.name .. (agent.name == current and " (now)" or "") .. "  " .. agent.model
    end,
  }, function(agent)
    if agent then
      local name = api.nvim_buf_get_name(buf)
      require("parley.host").notify("agent", { buf = buf, name = name, agent = agent.name })
    end
  end)
end

--- A file from elsewhere asks for an agent: the user is asked once whether that is what is wanted.
function M.confirm_agent(buf, agent)
  local answers = { "No", "Yes, ask it", "No, choose another agent" }
  local prompt = ("This chat was not made here and asks for %s. Is that what you want?"):format(agent)
  vim.ui.select(answers, { prompt = prompt }, function(_, number)
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

--- Let the user pick a chat, and open it.
function M.pick_chat(chats)
  vim.ui.select(chats, {
    prompt = "Chat",
    format_item = function(chat)
      return chat.when .. "  " .. chat.topic
    end,
  }, function(chat)
    if chat then
      vim.cmd.edit(vim.fn.fnameescape(chat.path))
    end
  end)
end

--- The buffer of a page, -1 if it is not open.
function M.buffer(name)
  return vim.fn.bufnr("^" .. vim.fn.escape("parley://" .. name, ".*[]~\\") .. "$")
end

return M
