-- Starts the server for Python files, unless `vim.g.jaxsight_enable` is false, and adds `:Jaxsight`.

if vim.g.loaded_jaxsight then return end
vim.g.loaded_jaxsight = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.api.nvim_create_user_command('Jaxsight', function()
    vim.notify('jaxsight requires Neovim 0.11 or newer.', vim.log.levels.WARN)
  end, { nargs = '*' })
  return
end

vim.api.nvim_create_user_command('Jaxsight', function(call)
  require('jaxsight').run(call.fargs)
end, {
  nargs = '+',
  desc = 'Show the jaxpr, kernels or source of the function at the cursor',
  complete = function(...)
    return require('jaxsight').complete(...)
  end,
})

vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('jaxsight', {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'jaxsight' then require('jaxsight').attached(client, event.buf) end
    if client then require('jaxsight').beside(event.buf) end
  end,
})

if vim.g.jaxsight_enable ~= false then vim.lsp.enable('jaxsight') end
