-- `:checkhealth jaxsight`

local M = {}

function M.check()
  local health = vim.health
  health.start('jaxsight')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is required')
    return
  end
  local config = vim.lsp.config.jaxsight
  local command = config and type(config.cmd) == 'table' and config.cmd[1] or 'jaxsight'
  if vim.fn.executable(command) == 1 then
    local said = vim.system({ command, '--version' }, { text = true }):wait()
    health.ok(('`%s` is %s: %s'):format(command, vim.fn.exepath(command), vim.trim(said.stdout or '')))
  else
    health.error(('`%s` is not executable'):format(command), {
      'Install jaxsight in its own environment: run `pipx install .` in a clone.',
      "Or set the command: vim.lsp.config('jaxsight', { cmd = { '/path/to/jaxsight', 'server' } })",
    })
  end
  local clients = vim.lsp.get_clients({ name = 'jaxsight' })
  if #clients == 0 then health.info('No server is running; it starts with the first Python file.') end
  for _, status in ipairs(require('jaxsight').statuses()) do
    local words = ('%s: %s, %s (%s) %s'):format(
      vim.uri_to_fname(status.root),
      status.state,
      status.python,
      status.reason,
      status.detail
    )
    if status.state == 'failed' then
      health.error(words)
    elseif status.state == 'untrusted' then
      health.warn(words, { 'Run `:Jaxsight trust` to decide.', 'Or run `jaxsight trust FOLDER` in a terminal.' })
    elseif status.jax ~= '' then
      health.ok(words .. ' JAX ' .. status.jax)
      health.info(status.confined)
    else
      health.info(words)
    end
  end
  for _, file in ipairs(require('jaxsight').troubled_files()) do
    local advice = file.problem == 'missing' and { 'Run `:Jaxsight install`.' } or { 'Run `:Jaxsight target` for another one.' }
    health.warn(('%s: %s'):format(vim.uri_to_fname(file.uri), file.detail), advice)
  end
end

return M
