-- Defines commands, <Plug> maps and an autocommand; their modules are loaded on first use.
if vim.g.loaded_parley then
  return
end
vim.g.loaded_parley = true

local commands = {
  ChatNew = { nargs = "*", range = true },
  Ask = { nargs = "*", range = true },
  Question = {},
  Respond = { nargs = "?", bang = true, complete = true },
  Apply = { bang = true },
  Rewrite = { nargs = "+", range = true },
  Approve = { nargs = "+", complete = true },
  Allow = {},
  Stop = {},
  Compact = { nargs = "?" },
  Agent = { nargs = "?", bang = true, complete = true },
  Tools = {},
  ServerAdd = { nargs = "+", complete = true },
  Login = { nargs = 1, bang = true, complete = true },
  Prompt = { nargs = "*", complete = true },
  Image = { nargs = "?", complete = "file" },
  Request = {},
  Log = {},
  Changes = {},
  Revert = { bang = true },
  Outline = {},
  Find = { nargs = "*" },
  Fork = {},
  Compare = { nargs = "+", complete = true },
  Export = { nargs = "?", bang = true, complete = "file" },
  Install = { bang = true },
}
if vim.fn.has("nvim-0.10") == 0 then
  for name in pairs(commands) do
    vim.cmd(
      ("command! -bang -nargs=* Parley%s lua require('parley.version').complain()"):format(name)
    )
  end
  return
end
local function map(name, rhs)
  vim.api.nvim_set_keymap("n", "<Plug>(" .. name .. ")", rhs, { desc = name })
end
for name, opts in pairs(commands) do
  if opts.complete == true then
    opts.complete = function(lead, line)
      return require("parley.commands").complete(name, lead, line)
    end
  end
  vim.api.nvim_create_user_command("Parley" .. name, function(args)
    require("parley.commands").run(name, args)
  end, opts)
  map("Parley" .. name, "<Cmd>Parley" .. name .. "<CR>")
end
for _, choice in ipairs({ "yA", "ya", "yo", "yO", "yn", "yN" }) do
  map("parley-" .. choice, ("<Cmd>lua require('parley.keys').act('%s', true)<CR>"):format(choice))
end
map("parley-details", "<Cmd>lua require('parley.keys').details()<CR>")
map("parley-next", "<Cmd>lua require('parley').jump(vim.v.count1)<CR>")
map("parley-previous", "<Cmd>lua require('parley').jump(-vim.v.count1)<CR>")

vim.api.nvim_create_autocmd("FileType", {
  pattern = "markdown",
  group = vim.api.nvim_create_augroup("parley", {}),
  callback = function(event)
    require("parley.chat").opened(event.buf)
  end,
})
