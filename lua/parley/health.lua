--- `:checkhealth parley`: checks each part in the order of dependence, and says how to fix it.
local M = {}

local H = {}
local health = vim.health

function M.check()
  local version = require("parley.version")
  if not version.is_enough() then
    local report = health and health.report_error or require("health").report_error -- its name before 0.10
    return report(version.problem())
  end
  H.editor()
  if H.environment() and H.host() then
    for _, line in ipairs(H.said) do
      health[line.level](line.text, #line.advice > 0 and line.advice or nil)
    end
  end
  H.keys()
end

--- Receive the host's part of the report.
function M.heard(lines)
  H.said = lines
end

function H.editor()
  health.start("parley: Neovim")
  health.ok("Neovim " .. (tostring(vim.version()):gsub("%+.*", "")))
  local ok, parser = pcall(vim.treesitter.language.add, "markdown")
  if ok and parser then
    health.ok("the Treesitter parser for Markdown is installed")
  else
    health.info("no Treesitter parser for Markdown, so chats use the regex syntax")
  end
  for _, marker in pairs(require("parley.known").markers) do
    if vim.fn.strdisplaywidth(marker) ~= 2 then
      health.warn(
        marker .. " is not two cells wide here, so lines that start with it may look shifted",
        "Set 'emoji' (:set emoji), and see :help setcellwidths()"
      )
    end
  end
end

function H.environment()
  health.start("parley: Python environment")
  local install = require("parley.install")
  if vim.g.parley_host == "python3" then
    health.info("vim.g.parley_host is 'python3', so Parley uses the shared host and its packages")
    if vim.fn.exists("*_ParleyAttach") == 0 then
      health.error(
        "the remote plugin is not registered",
        "Run :UpdateRemotePlugins and restart Neovim"
      )
      return false
    end
    return true
  end
  local python = install.python()
  if not python then
    local _, why = install.commands()
    health.error(
      why or ("there is no Python environment yet: " .. install.dir()),
      "Run :ParleyInstall"
    )
    return false
  end
  local ran = H.run({ python, "-I", "-c", install.probe("sys") })
  local version = vim.trim(ran.stdout or "")
  local flaw = ran.code ~= 0 and install.flaw(python, ran)
  if not flaw then
    ran = H.run({ python, "-I", "-c", install.inventory, install.requirements() })
    ran.stdout = version
    flaw = ran.code ~= 0 and install.flaw(python, ran)
  end
  if flaw then
    local remedy = "Run :ParleyInstall! to recreate the environment"
    if vim.g.parley_python then
      remedy = "install Parley’s requirements there, or unset the variable"
      remedy = "vim.g.parley_python is set to this Python: " .. remedy
    end
    health.error(flaw, { remedy })
    return false
  end
  health.ok(("%s (Python %s)"):format(python, version))
  return true
end

function H.host()
  health.start("parley: host")
  local host = require("parley.host")
  H.said = nil
  host.notify("health", { cwd = vim.fn.getcwd() })
  local heard = vim.wait(20000, function()
    return H.said ~= nil
  end, 20)
  local state = host.state()
  for _, line in ipairs(state.stderr) do
    health.info("stderr: " .. line)
  end
  if not heard then
    health.error("the host does not answer", { "See " .. host.log(), "Run :ParleyInstall!" })
    return false
  end
  local ms = state.started_in_ms and (" and was ready after %d ms"):format(state.started_in_ms)
    or ""
  health.ok("the host answers" .. ms)
  local log = host.log()
  health.info(
    "its log: " .. log .. (vim.uv.fs_stat(log) and "" or " (nothing has been logged yet)")
  )
  if vim.g.parley_last_error then
    health.warn("the last drawing error: " .. vim.g.parley_last_error)
  end
  return true
end

function H.keys()
  health.start("parley: keys")
  if not vim.o.timeout or vim.o.timeoutlen == 0 then
    health.warn("with this 'timeoutlen', Parley cannot tell the choice ya from a text object", {
      "Set it to a few hundred milliseconds, or use :ParleyApprove",
    })
  end
  local keys = require("parley.keys")
  for _, lhs in ipairs(keys.choices) do
    local map = vim.fn.maparg(lhs, "n", false, true)
    if map.lhs and map.buffer == 0 then
      local hidden = "your mapping for %s is hidden while a tool call is waiting for a choice"
      health.info(hidden:format(lhs))
    end
  end
  health.ok("the choice keys work only in chats, and only while a call is waiting")
end

function H.run(command)
  local ok, ran = pcall(function()
    return vim
      .system(command, { text = true, cwd = require("parley.install").folder() })
      :wait(10000)
  end)
  return ok and ran or { code = 1, stderr = tostring(ran) }
end

return M
