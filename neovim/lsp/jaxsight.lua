-- Configuration of the server; change it with `vim.lsp.config('jaxsight', { … })`.

-- Runs a command that makes a document.
local function show(command, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  require('jaxsight.documents').show(client, command.arguments, command.command)
end

local capabilities = vim.lsp.protocol.make_client_capabilities()
-- The plugin opens generated documents beside the source.
capabilities.window.showDocument = { support = false }
capabilities.experimental = { jaxsight = true }

return {
  cmd = { 'jaxsight', 'server' },
  -- Nothing of the project is looked up or imported to start the server.
  cmd_cwd = vim.uv.os_homedir(),
  cmd_env = { PYTHONSAFEPATH = '1' },
  filetypes = { 'python', 'mlir', 'stablehlo', 'hlo' },
  root_dir = function(buffer, found)
    -- An installed library belongs to the current project, with its example inputs.
    local library = vim.api.nvim_buf_get_name(buffer):find('/site-packages/', 1, true)
    local markers = { 'pyproject.toml', 'setup.py', '.git' }
    found(not library and vim.fs.root(buffer, markers) or vim.fn.getcwd())
  end,
  capabilities = capabilities,
  commands = {
    -- Commands of lenses and code actions.
    ['jaxsight.show'] = show,
    ['jaxsight.extractRepro'] = show,
    ['jaxsight.reduceRepro'] = show,
  },
  handlers = {
    ['jaxsight/textDocumentContentRefresh'] = function(_, made)
      require('jaxsight.documents').refresh(made.uri)
    end,
    ['jaxsight/status'] = function(_, status)
      require('jaxsight').told(status)
    end,
    ['jaxsight/fileStatus'] = function(_, status)
      require('jaxsight').told_file(status)
    end,
    ['jaxsight/output'] = function(_, output)
      require('jaxsight').printed(output)
    end,
    ['jaxsight/panelRefresh'] = function() end,
    ['jaxsight/reveal'] = function(_, revealed, context)
      require('jaxsight.panel').reveal(revealed, context)
    end,
    ['textDocument/inlayHint'] = function(...)
      return require('jaxsight.hints').answered(...)
    end,
    ['window/showMessageRequest'] = function(...)
      return require('jaxsight.trust').asked(...)
    end,
  },
}
