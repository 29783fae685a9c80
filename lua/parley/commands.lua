--- What each command does with its arguments, and what can follow it.
local M = {}

local run = {
  ChatNew = function(parley, args)
    parley.new(args.args)
  end,
  Respond = function(parley, args)
    parley.respond({ regenerate = args.bang })
  end,
  Approve = function(parley, args)
    local choice, reason = args.args:match("^(%S+)%s*(.*)$")
    parley.approve(choice, reason)
  end,
  Agent = function(parley, args)
    parley.agent(args.args)
  end,
  Export = function(parley, args)
    parley.export(args.args, { force = args.bang })
  end,
  Install = function(parley, args)
    parley.install({ force = args.bang })
  end,
}

local candidates = {
  Agent = function()
    return require("parley.host").agents()
  end,
  Approve = function()
    return require("parley.keys").choices
  end,
}

function M.run(name, args)
  local parley = require("parley")
  if run[name] then
    run[name](parley, args)
  else
    parley[name:lower()]()
  end
end

function M.complete(name, lead, line)
  local words = vim.split(vim.trim(line), "%s+")
  if #words > (lead == "" and 1 or 2) then
    return {}
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates[name]())
end

return M
