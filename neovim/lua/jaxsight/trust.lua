-- The server's questions about folders: whether their code may run, and what may leave this machine.
--
-- Neovim's own handler opens a list at once, so that `1` and Enter typed for the buffer would be an answer. Here a
-- question waits until the user runs `:Jaxsight trust`.

local M = {}

-- Milliseconds after `:Jaxsight trust` in which a new question is shown at once.
local SOON = 5000

-- Questions without an answer, the oldest first: { client_id, message, actions, resume }.
local questions = {}
local expected = -math.huge

-- Shows a question, which stays pending if it is dismissed.
local function put(question)
  vim.ui.select(question.actions, {
    prompt = question.message,
    kind = 'jaxsight.trust',
    format_item = function(action)
      return action.title
    end,
  }, function(action)
    if not action then return end
    questions = vim.tbl_filter(function(each)
      return each ~= question
    end, questions)
    -- Only after the coroutine has yielded: `vim.ui.select` may call back at once.
    vim.schedule(function()
      question.resume(action)
    end)
  end)
end

-- Returns the questions of running servers.
function M.waiting()
  questions = vim.tbl_filter(function(question)
    local client = vim.lsp.get_client_by_id(question.client_id)
    return client ~= nil and not client:is_stopped()
  end, questions)
  return questions
end

-- Shows the oldest question, and returns whether there is one.
function M.answer()
  local question = M.waiting()[1]
  if question then put(question) end
  return question ~= nil
end

-- The user has requested a question, which the server will send.
function M.expect()
  expected = vim.uv.now() + SOON
end

-- `window/showMessageRequest`
function M.asked(problem, params, context)
  local running, is_main = coroutine.running()
  local decision = params.type == vim.lsp.protocol.MessageType.Warning and not vim.tbl_isempty(params.actions or {})
  if not decision or not running or is_main then
    return vim.lsp.handlers['window/showMessageRequest'](problem, params, context)
  end
  local question = {
    client_id = context.client_id,
    message = params.message,
    actions = params.actions,
    resume = function(action)
      coroutine.resume(running, action)
    end,
  }
  table.insert(questions, question)
  if vim.uv.now() < expected and vim.api.nvim_get_mode().mode == 'n' then
    expected = -math.huge
    vim.schedule(function()
      put(question)
    end)
  else
    vim.notify('jaxsight needs your decision before it runs code: run :Jaxsight trust', vim.log.levels.WARN)
  end
  return coroutine.yield()
end

return M
