-- The panel as a page in a browser, which the server serves: it follows the cursor, and leads back to the source.

local documents = require('jaxsight.documents')

local M = {}

-- Milliseconds between two notifications while the cursor moves.
local REST = 30

local lit = vim.api.nvim_create_namespace('jaxsight.panel')
-- Where the page has led the cursor: places stay highlighted until it moves from there.
local led

-- Returns the buffer and the cursor in it.
local function here()
  return { vim.api.nvim_get_current_buf(), unpack(vim.api.nvim_win_get_cursor(0)) }
end

local function tell(client)
  if vim.lsp.buf_is_attached(0, client.id) and not documents.is_made(0) then
    client:notify('jaxsight/cursor', vim.lsp.util.make_position_params(0, client.offset_encoding))
  end
end

-- Notifies the server of the cursor from now on.
local function follow(client)
  local waiting = false
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, {
    group = vim.api.nvim_create_augroup('jaxsight.panel.' .. client.id, {}),
    callback = function()
      if client:is_stopped() then return true end
      if led and not vim.deep_equal(led, here()) then
        led = nil
        documents.light_places({}, client.offset_encoding, lit)
      end
      if waiting then return end
      waiting = true
      vim.defer_fn(function()
        waiting = false
        if not client:is_stopped() then tell(client) end
      end, REST)
    end,
  })
end

-- Opens the page in a browser.
function M.open(client)
  tell(client)
  follow(client)
  client:request('workspace/executeCommand', { command = 'jaxsight.openPanel' }, function(problem, opened)
    if problem then return vim.notify(problem.message, vim.log.levels.WARN) end
    if not opened or opened == vim.NIL then return end -- The server has shown the reason.
    local _, failure = vim.ui.open(opened.url)
    if failure then vim.notify('Open the panel in a browser: ' .. opened.url, vim.log.levels.INFO) end
  end)
end

-- `jaxsight/reveal`: highlights places, and leads the cursor to the first.
function M.reveal(revealed, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not client then return end
  local first = revealed.places[1]
  if first then vim.lsp.util.show_document(first, client.offset_encoding, { focus = true, reuse_win = true }) end
  led = here()
  documents.light_places(revealed.places, client.offset_encoding, lit)
end

return M
