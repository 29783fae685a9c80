--- Runs each command with its arguments, and completes them.
local M = {}

local H = {}

local run = {
  ChatNew = function(parley, args)
    parley.new(
      args.args,
      { mods = args.smods, lines = args.range > 0 and { args.line1, args.line2 } or nil }
    )
  end,
  Ask = function(parley, args)
    parley.ask(
      args.args,
      { mods = args.smods, lines = args.range > 0 and { args.line1, args.line2 } or nil }
    )
  end,
  Respond = function(parley, args)
    parley.respond({ regenerate = args.bang, agent = args.args })
  end,
  Apply = function(parley, args)
    parley.apply({ is_whole = args.bang })
  end,
  Rewrite = function(parley, args)
    parley.rewrite(args.args, { mods = args.smods, lines = { args.line1, args.line2 } })
  end,
  Approve = function(parley, args)
    local choice, reason = args.args:match("^(%S+)%s*(.*)$")
    parley.approve(choice, reason)
  end,
  Agent = function(parley, args)
    parley.agent(args.args, { stays = args.bang })
  end,
  Compare = function(parley, args)
    parley.compare(args.fargs)
  end,
  Compact = function(parley, args)
    parley.compact(args.args)
  end,
  Revert = function(parley, args)
    parley.revert({ repeats = args.bang })
  end,
  Find = function(parley, args)
    parley.find(args.args)
  end,
  Outline = function(parley, args)
    parley.outline({ mods = args.smods })
  end,
  Export = function(parley, args)
    parley.export(args.args, { force = args.bang })
  end,
  Prompt = function(parley, args)
    parley.prompt(args.fargs)
  end,
  Image = function(parley, args)
    parley.image(args.args)
  end,
  ServerAdd = function(parley, args)
    require("parley.window").expect("tools", args.smods)
    parley.add_server(args.fargs)
  end,
  Login = function(parley, args)
    parley[args.bang and "logout" or "login"](args.args)
  end,
  Install = function(parley, args)
    parley.install({ force = args.bang })
  end,
}
local later = {
  Request = "request",
  Tools = "tools",
  Log = "log",
  Find = "find",
  Fork = "fork",
  Allow = "permissions",
}
for name, page in pairs(later) do
  local act = run[name] or function(parley)
    parley[name:lower()]()
  end
  run[name] = function(parley, args)
    require("parley.window").expect(page, args.smods)
    act(parley, args)
  end
end

local function agents()
  return require("parley.host").agents()
end

local candidates = {
  Agent = function()
    return vim.list_extend(vim.list_slice(agents()), require("parley.completion").offered())
  end,
  Respond = agents,
  Compare = function(_, named)
    return vim.tbl_filter(function(agent)
      return not vim.list_contains(named, agent)
    end, vim.tbl_map(H.escaped, agents()))
  end,
  Approve = function()
    return require("parley.keys").choices
  end,
  Login = function(name)
    return name and {} or require("parley.host").accounts()
  end,
  ServerAdd = function(name)
    return name and {} or require("parley.known").servers
  end,
  Prompt = function(name)
    local words = {}
    for _, prompt in ipairs(require("parley.host").prompts()) do
      if not name then
        table.insert(words, prompt.name)
      elseif prompt.name == name then
        words = vim.tbl_map(function(argument)
          return argument .. "="
        end, prompt.arguments)
      end
    end
    return vim.tbl_map(H.escaped, words)
  end,
}

--- A word as an argument of a command.
function H.escaped(word)
  return vim.fn.escape(word, " \\")
end

function M.run(name, args)
  local parley = require("parley")
  local act = run[name] or function()
    parley[name:lower()]()
  end
  require("parley.window").try(act, parley, args)
end

function M.complete(name, lead, line)
  local words = vim.split(vim.trim(line), "%s+")
  local before = #words - (lead == "" and 0 or 1)
  if before > 1 and name ~= "Prompt" and name ~= "Compare" then
    return {}
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates[name](before > 1 and words[2] or nil, vim.list_slice(words, 2, before)))
end

return M
