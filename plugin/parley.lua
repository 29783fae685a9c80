-- Commands, <Plug> maps and one autocommand; whatever they need is loaded when they are first used.
if vim.g.loaded_parley then
  return
end
vim.g.loaded_parley = true

local commands = {
  ChatNew = { nargs = "*" },
  Respond = { bang = true },
  Approve = { nargs = "+", complete = true },
  Stop = {},
  Agent = { nargs = "?", complete = true },
  Tools = {},
  Prompt = { nargs = "*", complete = true },
  Request = {},
  Log = {},
  Outline = {},
  Find = {},
  Export = { nargs = "?", bang = true, complete = "file" },
  Install = { bang = true },
}
if vim.fn.has("nvim-0.10") == 0 then
  for name in pairs(commands) do
    vim.cmd(("command! -bang -nargs=* Parley%s lua require('parley.version').complain()"):format(name))
  end
  return
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
  vim.api.nvim_set_keymap("n", "<Plug>(Parley" .. name .. ")", "<Cmd>Parley" .. name .. "<CR>", {})
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = "markdown",
  group = vim.api.nvim_create_augroup("parley", {}),
  callback = function(event)
    require("parley.chat").opened(event.buf)
  end,
})
