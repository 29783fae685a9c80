--- Shows the host's questions with `vim.ui`, one at a time, until they are answered, dismissed or
--- withdrawn.
local M = {}

local api = vim.api
local H = { open = nil }

--- Let the user pick a line. The host receives the line's number, or nil if the user picked none.
---@param id integer
---@param prompt string
---@param items string[]
function M.select(id, prompt, items)
  H.ask(id, function(done)
    M.pick(items, { prompt = prompt, kind = "parley" }, function(_, number)
      done(number)
    end)
  end)
end

--- Call |vim.ui.select()|; CTRL-C picks nothing, as <Esc> does. While Neovim 0.10 shows its own
--- numbered list, it does not handle requests: replies do not stream, and the host cannot withdraw a
--- question. So on 0.10 the list is the prompt of |input()|.
---@param items any[]
---@param opts table with a prompt
---@param done fun(item?: any, number?: integer)
function M.pick(items, opts, done)
  if vim.fn.has("nvim-0.11") == 1 or not require("parley.plugins").is_builtin(vim.ui.select) then
    local ok, why = pcall(vim.ui.select, items, opts, done)
    if not ok and tostring(why):find("Keyboard interrupt", 1, true) then
      done()
    elseif not ok then
      error(why, 0)
    end
    return
  end
  local rows = { opts.prompt }
  for number, item in ipairs(items) do
    rows[#rows + 1] = ("%d: %s"):format(number, (opts.format_item or tostring)(item))
  end
  rows[#rows + 1] = "Type number and <Enter> (q or empty cancels): "
  local typed = vim.fn.input({ prompt = table.concat(rows, "\n"), cancelreturn = "" })
  vim.cmd.redraw()
  local number = typed:match("^%d+$") and tonumber(typed)
  local item = number and items[number]
  done(item, item ~= nil and number or nil)
end

--- Let the user type a line.
---@param id integer
---@param prompt string
---@param default string
function M.input(id, prompt, default)
  H.ask(id, function(done)
    M.line(prompt .. " ", default, done)
  end)
end

--- Let the user type a line; remove the question from the screen afterwards.
---@param prompt string
---@param default? string
---@param done fun(value?: string)
function M.line(prompt, default, done)
  vim.ui.input({ prompt = prompt, default = default }, function(value)
    vim.cmd.redraw()
    require("parley.messages").wipe()
    done(value)
  end)
end

--- Open an address that the user has approved, with Neovim's own function.
---@param url string
---@return string? why it failed
function M.open_url(url)
  local ok, _, failure = pcall(vim.ui.open, url)
  return (not ok and "vim.ui.open failed") or failure
end

--- Remove a question from the screen, because its answer is no longer needed.
---@param id? integer by default the open question
function M.withdraw(id)
  local open = H.open
  if not open or (id and open.id ~= id) then
    return
  end
  H.open = nil
  if open.win and api.nvim_win_is_valid(open.win) then
    pcall(api.nvim_win_close, open.win, true)
  elseif open.shown and not open.win and H.is_prompting() then
    api.nvim_input("<Esc>")
  end
end

function H.ask(id, show)
  local open = { id = id }
  H.open = open
  local function done(value)
    if H.open == open then
      H.open = nil
      require("parley.host").mention("answered", { id = id, value = value })
    end
  end
  H.when_free(function()
    if H.open ~= open then
      return
    end
    local before = api.nvim_list_wins()
    vim.cmd.redraw() -- a page for it may just have been opened
    open.shown = true
    if not pcall(show, done) then
      done(nil) -- interrupted
    end
    if H.open == open then -- the user answers later, in another plugin's window
      local win = api.nvim_get_current_win()
      open.win = not vim.list_contains(before, win) and win or nil
    end
  end)
end

--- Act when the user has stopped typing, because a prompt would consume the keys.
function H.when_free(act)
  vim.schedule(function()
    if api.nvim_get_mode().mode == "n" then
      act()
      return
    end
    api.nvim_create_autocmd("ModeChanged", {
      pattern = "*:n*",
      once = true,
      callback = function()
        H.when_free(act)
      end,
    })
  end)
end

--- Whether the prompt on the screen belongs to |input()| or to a numbered list.
function H.is_prompting()
  return vim.fn.getcmdtype():match("^[@-]$") ~= nil
end

return M
