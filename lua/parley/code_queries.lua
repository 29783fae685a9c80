--- Answers the host's questions about code with the language servers that run in Neovim. Each answer
--- is bounded in time and size; the host decides what the model receives.
local M = {}

local api, lsp = vim.api, vim.lsp
local H = { diagnosed = {} }

local limit_ms = 10000
local most_bytes = 4194304 -- of a file that is not open, because Neovim waits while it is read
local news_ms = 2000 -- how long a language server may take to check a changed text
local methods = {
  symbols = "workspace/symbol",
  definition = "textDocument/definition",
  references = "textDocument/references",
}

--- Remember from now on for which texts there are diagnostics.
function M.watch()
  if H.group then
    return
  end
  H.group = api.nvim_create_augroup("parley.code_queries", {})
  api.nvim_create_autocmd("DiagnosticChanged", {
    group = H.group,
    callback = function(args)
      H.diagnosed[args.buf] = api.nvim_buf_get_changedtick(args.buf)
    end,
  })
  api.nvim_create_autocmd("BufUnload", {
    group = H.group,
    callback = function(args)
      H.diagnosed[args.buf] = nil
    end,
  })
end

--- The questions that can be answered now: a running language server can, or there are diagnostics.
---@return string[]
function M.abilities()
  local found = vim.tbl_filter(function(name)
    return #lsp.get_clients({ method = methods[name] }) > 0
  end, vim.tbl_keys(methods))
  if #lsp.get_clients() > 0 or next(vim.diagnostic.count()) then
    table.insert(found, "diagnostics")
  end
  return found
end

--- Answer a question later, with the message `queried`.
---@param id integer
---@param what "diagnostics"|"symbols"|"definition"|"references"
---@param most integer the maximum number of places or diagnostics
---@param path string "" for none
---@param line? integer counted from 1
---@param name? string the name in this line, or the query for symbols
function M.query(id, what, most, path, line, name)
  local function done(answer)
    require("parley.host").mention("queried", { id = id, value = answer })
  end
  local ok, why = pcall(H[what], done, most, path, line, name)
  if not ok then
    done({ problem = "Neovim cannot ask: " .. tostring(why) })
  end
end

function H.diagnostics(done, most, path)
  local buf = path ~= "" and require("parley.open_files").find(path) or nil
  if path ~= "" and not buf then
    done({ problem = "it is not open in Neovim, so there are no diagnostics for it" })
    return
  end
  M.watch()
  local function report()
    local all = vim.diagnostic.get(buf)
    table.sort(all, function(one, other)
      if one.severity ~= other.severity then
        return one.severity < other.severity
      end
      return one.bufnr == other.bufnr and one.lnum < other.lnum or one.bufnr < other.bufnr
    end)
    local found = vim.tbl_map(function(one)
      local severity = vim.diagnostic.severity[one.severity]
      local file = api.nvim_buf_get_name(one.bufnr)
      return { file, one.lnum + 1, one.col + 1, severity, one.message, one.source or "" }
    end, vim.list_slice(all, 1, most))
    done({ found = found, count = #all })
  end
  local waits = buf and #lsp.get_clients({ bufnr = buf }) > 0 and not H.is_fresh(buf)
  if waits then
    H.when_fresh(buf, report)
  else
    report()
  end
end

--- Whether the diagnostics belong to the current text.
function H.is_fresh(buf)
  return H.diagnosed[buf] == api.nvim_buf_get_changedtick(buf)
end

--- Act when a buffer's diagnostics arrive, or after a while.
function H.when_fresh(buf, act)
  local autocmd
  local function once()
    if autocmd then
      api.nvim_del_autocmd(autocmd)
      autocmd = nil
      act()
    end
  end
  autocmd = api.nvim_create_autocmd("DiagnosticChanged", {
    buffer = buf,
    callback = vim.schedule_wrap(once),
  })
  vim.defer_fn(once, news_ms)
end

function H.symbols(done, most, _, _, query)
  local clients = lsp.get_clients({ method = methods.symbols })
  H.request(clients, methods.symbols, function()
    return { query = query }
  end, function(results, problem)
    done(H.places(results, most, problem))
  end)
end

function H.definition(done, ...)
  H.at_name("definition", done, ...)
end

function H.references(done, ...)
  H.at_name("references", done, ...)
end

--- Ask about the name in a line of a file. A file that is not open is opened for the language
--- servers alone, and closed after the answer, so no buffer is created.
function H.at_name(what, done, most, path, line, name)
  local buf = require("parley.open_files").find(path)
  local lines = buf and {} or H.lines(path)
  if not lines then
    done({ problem = "it is not a file of a usual size" })
    return
  end
  local text = buf and api.nvim_buf_get_lines(buf, line - 1, line, false)[1] or lines[line]
  local column = text and H.column(text, name)
  if not column then
    done({ problem = ("line %d does not contain %s"):format(line, name) })
    return
  end
  local uri = vim.uri_from_fname(path)
  local clients = lsp.get_clients({ bufnr = buf, method = methods[what] })
  if not buf then
    local filetype = vim.filetype.match({ filename = path }) or ""
    clients = vim.tbl_filter(function(client)
      local filetypes = client.config.filetypes
      return not filetypes or vim.list_contains(filetypes, filetype)
    end, clients)
    for _, client in ipairs(clients) do
      local document = { uri = uri, version = 0, languageId = client.get_language_id(0, filetype) }
      document.text = table.concat(lines, "\n") .. "\n"
      H.call(client, "notify", "textDocument/didOpen", { textDocument = document })
    end
  end
  H.request(clients, methods[what], function(client)
    local character = H.units(text:sub(1, column), client.offset_encoding)
    return {
      textDocument = { uri = uri },
      position = { line = line - 1, character = character },
      context = what == "references" and { includeDeclaration = true } or nil,
    }
  end, function(results, problem)
    for _, client in ipairs(buf and {} or clients) do
      H.call(client, "notify", "textDocument/didClose", { textDocument = { uri = uri } })
    end
    done(H.places(results, most, problem))
  end)
end

--- The lines of a file that is not open; nil if it is not a file of a usual size: Neovim would wait
--- for a pipe.
function H.lines(path)
  local stat = vim.uv.fs_stat(path)
  if not stat or stat.type ~= "file" or stat.size > most_bytes then
    return nil
  end
  local ok, lines = pcall(vim.fn.readfile, path)
  return ok and lines or nil
end

--- The number of bytes before a name in a line; nil if the line does not contain the name.
function H.column(text, name)
  local whole = "%f[%w_]" .. vim.pesc(name) .. "%f[^%w_]"
  local start = name ~= "" and (text:find(whole) or text:find(name, 1, true))
  return start and start - 1 or nil
end

--- The length of a text in a client's units.
function H.units(text, encoding)
  return encoding == "utf-8" and #text
    or encoding == "utf-32" and vim.fn.strchars(text)
    or vim.fn.strutf16len(text)
end

--- Ask clients, and collect their results until all have answered or the time is over.
---@param params fun(client: vim.lsp.Client): table
---@param done fun(results: any[], problem?: string)
function H.request(clients, method, params, done)
  if #clients == 0 then
    done({}, "no language server that runs in Neovim can answer this")
    return
  end
  local results, requests, left, problem = {}, {}, #clients, nil
  local function finish()
    if left then
      left = nil
      done(results, #results == 0 and problem or nil)
    end
  end
  local function one_less()
    left = left and left - 1
    if left == 0 then
      finish()
    end
  end
  vim.defer_fn(function()
    for client, request in pairs(left and requests or {}) do
      H.call(client, "cancel_request", request)
    end
    problem = problem or "the language server did not answer in time"
    finish()
  end, limit_ms)
  for _, client in ipairs(clients) do
    local function answered(failure, result)
      requests[client] = nil
      problem = failure and (failure.message or "the language server failed") or problem
      if left and not failure then
        table.insert(results, result or vim.NIL)
      end
      one_less()
    end
    local is_sent, request = H.call(client, "request", method, params(client), answered)
    if is_sent then
      requests[client] = request
    else
      one_less()
    end
  end
end

--- Call a client's function, which is a method since Neovim 0.11.
function H.call(client, name, ...)
  if vim.fn.has("nvim-0.11") == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

--- The places in results: path, line, and the kind and name of a symbol. Places without the form of
--- the protocol are left out.
function H.places(results, most, problem)
  local found, known = {}, {}
  local function add(place)
    local uri = place.targetUri or place.uri
    local range = place.targetSelectionRange or place.targetRange or place.range
    local line = range and range.start.line + 1 or 1
    if type(uri) == "string" and vim.startswith(uri, "file:") then
      local label = place.label or ""
      local key = table.concat({ uri, line, label }, "\n")
      if not known[key] then
        known[key] = true
        table.insert(found, { vim.uri_to_fname(uri), line, label })
      end
    end
  end
  for _, result in ipairs(results) do
    local list = type(result) == "table" and (vim.islist(result) and result or { result }) or {}
    for _, each in ipairs(list) do
      pcall(function()
        local kind = each.location and lsp.protocol.SymbolKind[each.kind] or ""
        local label = each.location and vim.trim(kind:lower() .. " " .. tostring(each.name)) or nil
        add(vim.tbl_extend("force", each.location or each, { label = label }))
      end)
    end
  end
  return { found = vim.list_slice(found, 1, most), count = #found, problem = problem }
end

return M
