-- How Neovim starts the server and talks to it; `vim.lsp.config('jaxsight', { … })` changes any of it.

local capabilities = vim.lsp.protocol.make_client_capabilities()
-- Documents that the server makes are opened by the plugin, beside the source.
capabilities.window.showDocument = { support = false }
capabilities.experimental = { jaxsight = true }

return {
  cmd = { 'jaxsight', 'server' },
  filetypes = { 'python' },
  root_dir = function(buffer, found)
    -- An installed library is read with the example inputs of the project that you are in.
    local library = vim.api.nvim_buf_get_name(buffer):find('/site-packages/', 1, true)
    local markers = { 'pyproject.toml', 'setup.py', '.git' }
    found(not library and vim.fs.root(buffer, markers) or vim.fn.getcwd())
  end,
  capabilities = capabilities,
  commands = {
    -- What lenses and code actions run.
    ['jaxsight.show'] = function(command, context)
      require('jaxsight.documents').show(vim.lsp.get_client_by_id(context.client_id), command.arguments)
    end,
  },
  handlers = {
    ['jaxsight/textDocumentContentRefresh'] = function(_, made)
      require('jaxsight.documents').refresh(made.uri)
    end,
    ['jaxsight/status'] = function(_, status)
      require('jaxsight').told(status)
    end,
    ['jaxsight/output'] = function(_, output)
      require('jaxsight').printed(output)
    end,
    ['jaxsight/panelRefresh'] = function() end,
    ['window/showMessageRequest'] = function(...)
      return require('jaxsight.trust').asked(...)
    end,
  },
}
