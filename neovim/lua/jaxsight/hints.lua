-- Inlay hints that change while the text does not, which Neovim 0.11 draws only where it happens to.

local M = {}

-- The last hints of each buffer, as the server sent them.
local last = {}

-- Handles the answer to `textDocument/inlayHint`. Neovim forgets which lines it drew when the server asks for a refresh;
-- a redraw before the answer would mark the old hints as drawn, so that it forgets them here again.
function M.answered(problem, hints, context)
  local known = last[context.bufnr]
  if context.bufnr and not vim.deep_equal(known, hints) then
    last[context.bufnr] = vim.deepcopy(hints)
    vim.lsp.handlers['workspace/inlayHint/refresh'](nil, nil, context)
  end
  return vim.lsp.handlers['textDocument/inlayHint'](problem, hints, context)
end

-- Requests the hints of a buffer whenever a window shows it again: a refresh reaches only buffers in windows.
function M.watch(group, buffer)
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buffer,
    callback = function()
      local shown = { bufnr = buffer }
      if vim.lsp.inlay_hint.is_enabled(shown) then vim.lsp.inlay_hint.enable(true, shown) end
    end,
  })
end

function M.forget(buffer)
  last[buffer] = nil
end

return M
