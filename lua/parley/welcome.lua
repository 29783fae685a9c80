--- Shows, next to a new chat's empty question, which agent will answer and which key chooses
--- another, until the user writes.
local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("parley.welcome")
local H = {}

--- Show a text next to the empty question at the end of a buffer.
---@param text string
function M.show(buf, text)
  if not api.nvim_buf_is_loaded(buf) or not H.is_empty(buf) then
    return
  end
  local opts = { virt_text = { { text, "ParleyHint" } }, virt_text_pos = "eol", strict = false }
  api.nvim_buf_set_extmark(buf, ns, api.nvim_buf_line_count(buf) - 1, 0, opts)
  api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = buf,
    callback = function()
      if not H.is_empty(buf) then
        api.nvim_buf_clear_namespace(buf, ns, 0, -1)
        return true
      end
    end,
  })
end

--- Whether the last line of a buffer starts an empty question.
function H.is_empty(buf)
  local last = api.nvim_buf_get_lines(buf, -2, -1, false)[1] or ""
  return require("parley.chat").is_question(last) and last:match("^[^:]*:%s*$") ~= nil
end

return M
