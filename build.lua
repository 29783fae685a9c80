-- lazy.nvim runs this after an install or update, before it loads the plugin.
local root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local version = dofile(root .. "/lua/parley/version.lua")
if not version.is_enough() then
  error(version.problem(), 0)
end
local install = dofile(root .. "/lua/parley/install.lua")

local said, ended = {}, nil
install.run({
  say = function(text, level)
    said[#said + 1] = { text, level }
  end,
  done = function(ok)
    ended = { ok = ok }
  end,
})
while not ended do
  while #said > 0 do
    coroutine.yield(table.remove(said, 1)[1])
  end
  vim.wait(100, function()
    return ended ~= nil
  end)
end
for _, message in ipairs(said) do
  if message[2] == "error" then
    error(message[1], 0)
  end
  coroutine.yield(message[1])
end
