-- The list of targets to choose from, and compilers that are installed.

local M = {}

local GROUPS = { here = 'this machine', gpu = 'GPU', tpu = 'TPU', several = 'several devices', ssh = 'over ssh' }

local function execute(client, command, ...)
  client:exec_cmd({ title = command, command = command, arguments = { ... } })
end

-- Calls `answered` with the server's targets for a buffer.
local function request(client, buffer, answered)
  local params = { uri = vim.uri_from_bufnr(buffer) }
  client:request('jaxsight/targets', params, function(problem, offers)
    if problem then return vim.notify(problem.message, vim.log.levels.WARN) end
    if offers and offers ~= vim.NIL then answered(offers, params.uri) end
  end, buffer)
end

-- Returns the line of a target in the list.
local function line(offer)
  local parts = { offer.target, GROUPS[offer.group], offer.title }
  if offer.figures ~= '' then table.insert(parts, offer.figures) end
  table.insert(parts, offer.detail)
  return (offer.active and '* ' or '  ') .. table.concat(parts, ' · ')
end

-- Lets the user choose a target; the server asks about a compiler that is missing.
function M.choose(client, buffer)
  request(client, buffer, function(offers, uri)
    local options = { prompt = 'Target to show kernels for', kind = 'jaxsight.target', format_item = line }
    vim.ui.select(offers.targets, options, function(offer)
      if offer then execute(client, 'jaxsight.chooseTarget', offer.target, uri) end
    end)
  end)
end

-- Lets the user choose a compiler to install; the server asks before it downloads anything.
function M.install(client, buffer)
  request(client, buffer, function(offers, uri)
    local options = {
      prompt = 'Compiler to install',
      kind = 'jaxsight.compiler',
      format_item = function(compiler)
        local installed = #compiler.installed > 0 and 'JAX ' .. table.concat(compiler.installed, ', ') or 'not installed'
        return ('%s · %s · about %d MB to download'):format(compiler.title, installed, compiler.download)
      end,
    }
    vim.ui.select(offers.compilers, options, function(compiler)
      if compiler then execute(client, 'jaxsight.installTarget', compiler.platform, uri) end
    end)
  end)
end

-- Cancels what the server shows progress of, such as an installation.
function M.cancel(client)
  for token in pairs(client.progress.pending) do
    client:notify('window/workDoneProgress/cancel', { token = token })
  end
end

return M
