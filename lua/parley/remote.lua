--- The only requests that the host may make, by name.
local routes = {
  read = { "edit", "read" },
  look = { "edit", "look" },
  move = { "handle", "move" },
  apply = { "edit", "apply" },
  pin = { "handle", "pin" },
  finish = { "handle", "finish" },
  close = { "handle", "close" },
  open_after = { "handle", "open_after" },
  typing = { "handle", "typing" },
  queue_read = { "queue", "read" },
  queue_put = { "queue", "put" },
  queue_take = { "queue", "take" },
  queue_remove = { "queue", "remove" },
  open_stream = { "stream", "open" },
  append = { "stream", "append" },
  write = { "stream", "write" },
  draw = { "view", "draw" },
  clear = { "view", "clear" },
  pictures = { "pictures", "learn" },
  picture_files = { "pictures", "put" },
  folds = { "folds", "update" },
  keep = { "chat", "keep" },
  call = { "running", "change" },
  calls_end = { "running", "stop" },
  status = { "status", "show" },
  waiting = { "status", "waiting" },
  ended = { "status", "ended" },
  usage = { "status", "usage" },
  agent = { "status", "agent" },
  message = { "host", "message" },
  agent_offer = { "completion", "has_offer" },
  prompts = { "host", "has_prompts" },
  resources = { "completion", "has_resources" },
  resource_values = { "completion", "has_values" },
  ready = { "host", "is_ready" },
  scratch = { "pages", "scratch" },
  tools_page = { "servers_page", "draw" },
  permissions_page = { "permissions_page", "draw" },
  models_page = { "models_page", "draw" },
  changes_page = { "changes_page", "draw" },
  changes_diff = { "changes_page", "diff" },
  changes_hunks = { "changes_page", "hunks" },
  three_way = { "changes_page", "three_way" },
  context = { "context", "text" },
  reload = { "open_files", "reload" },
  code_abilities = { "code_queries", "abilities" },
  code_query = { "code_queries", "query" },
  file_text = { "open_files", "text" },
  file_apply = { "open_files", "apply" },
  apply_file = { "apply", "file" },
  apply_show = { "apply", "show" },
  file_move = { "open_files", "move" },
  rewritten = { "rewrite", "receive" },
  brought = { "chat", "brought" },
  forked = { "chat", "forked" },
  compared = { "compare", "open" },
  page_rest = { "pages", "rest" },
  close_page = { "pages", "close" },
  ask_select = { "dialogs", "select" },
  ask_input = { "dialogs", "input" },
  terminal = { "login_terminal", "run" },
  withdraw = { "dialogs", "withdraw" },
  open_url = { "dialogs", "open_url" },
  float = { "pages", "float" },
  review = { "review", "open" },
  pick_agent = { "pages", "pick_agent" },
  welcome = { "welcome", "show" },
  confirm_agent = { "pages", "confirm_agent" },
  pick_chat = { "finder", "pick" },
  healthy = { "health", "heard" },
}

--- Convert vim.NIL, which represents a missing value, to nil.
local function plain(value)
  if value == vim.NIL then
    return nil
  end
  return value
end

return function(name, ...)
  local route, arguments = routes[name], {}
  for i = 1, select("#", ...) do
    arguments[i] = plain((select(i, ...)))
  end
  return require("parley." .. route[1])[route[2]](unpack(arguments, 1, select("#", ...)))
end
