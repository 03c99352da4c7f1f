-- `:Jaxsight`, and notifications of the server.

local documents = require('jaxsight.documents')
local functions = require('jaxsight.functions')
local hints = require('jaxsight.hints')
local panel = require('jaxsight.panel')
local targets = require('jaxsight.targets')
local trust = require('jaxsight.trust')

local M = {}

local TRANSFORMATIONS = { 'grad', 'value_and_grad', 'vmap', 'jit' }
-- Milliseconds without cursor movement after which a split follows it to another function.
local REST = 150

-- The last status of each root and of each file, and the output of user code.
local statuses = {}
local files = {}
local prints = {}

local function client()
  local found = vim.lsp.get_clients({ bufnr = 0, name = 'jaxsight' })[1]
  if not found then vim.notify('No jaxsight server is attached to this buffer; see :checkhealth jaxsight', vim.log.levels.WARN) end
  return found
end

-- Returns the server, this buffer's URI and the function at the cursor; nothing if one of them is missing.
local function here()
  local server = client()
  local name = functions.at(0, vim.api.nvim_win_get_cursor(0)[1])
  if server and not name then
    vim.notify('Place the cursor in a function with example inputs.', vim.log.levels.INFO)
  end
  if server and name then return server, vim.uri_from_bufnr(0), name end
end

local PROGRAM_FILES = { mlir = true, stablehlo = true, hlo = true }

local function show(...)
  local server, uri, name
  if PROGRAM_FILES[vim.bo.filetype] then
    -- A program's file has no function at the cursor: it is shown as a whole.
    server, uri, name = client(), vim.uri_from_bufnr(0), vim.fn.expand('%:t:r')
  else
    server, uri, name = here()
  end
  if server then documents.show(server, { uri, name, ... }) end
end

-- Shows what another command makes of the function at the cursor.
local function show_result(command)
  local server, uri, name = here()
  if server then documents.show(server, { uri, name }, command) end
end

local function execute(command, ...)
  local server = client()
  if server then server:exec_cmd({ title = command, command = command, arguments = { ... } }) end
end

-- Subcommands of `:Jaxsight`, each with its function and the words to complete.
local commands = {
  jaxpr = {
    run = function()
      show('jaxpr')
    end,
  },
  stablehlo = {
    run = function()
      show('stablehlo')
    end,
  },
  hlo = {
    run = function()
      show('hlo')
    end,
  },
  sourcerize = {
    run = function(transformation)
      show('pretty', transformation)
    end,
    words = TRANSFORMATIONS,
  },
  lax = {
    run = function(transformation)
      show('lax', transformation)
    end,
    words = TRANSFORMATIONS,
  },
  repro = {
    run = function()
      show_result('jaxsight.extractRepro')
    end,
  },
  reduce = {
    run = function()
      show_result('jaxsight.reduceRepro')
    end,
  },
  profile = {
    run = function(path)
      local server = client()
      if not server then return end
      documents.show(server, { vim.fn.fnamemodify(path or '.jaxsight/profiles', ':p') }, 'jaxsight.openProfile')
    end,
  },
  kernels = {
    run = function()
      local server, uri, name = here()
      if not server then return end
      local command = { command = 'jaxsight.show', arguments = { uri, name, 'kernels' } }
      server:request('workspace/executeCommand', command, function(problem, shown)
        if problem then return vim.notify(problem.message, vim.log.levels.WARN) end
        if not shown or shown == vim.NIL then return end
        local lines = vim.split(vim.trim(shown.text), '\n')
        vim.lsp.util.open_floating_preview(lines, '', { border = 'rounded', focus_id = 'jaxsight.kernels', wrap = false })
      end)
    end,
  },
  measure = {
    run = function()
      local server, uri, name = here()
      if not server then return end
      local command = { command = 'jaxsight.measure', arguments = { uri, name } }
      server:request('workspace/executeCommand', command, function(problem, measured)
        if problem then return vim.notify(problem.message, vim.log.levels.WARN) end
        if not measured or measured == vim.NIL then return end -- Cancelled, or the server has shown the reason.
        vim.notify(table.concat({ measured.headline, unpack(measured.notes) }, '\n'), vim.log.levels.INFO)
      end)
    end,
  },
  panel = {
    run = function()
      local server = client()
      if server then panel.open(server) end
    end,
  },
  target = {
    run = function(target)
      local server = client()
      if target then
        execute('jaxsight.chooseTarget', target, vim.uri_from_bufnr(0))
      elseif server then
        targets.choose(server, vim.api.nvim_get_current_buf())
      end
    end,
  },
  install = {
    run = function(platform)
      local server = client()
      if platform then
        execute('jaxsight.installTarget', platform, vim.uri_from_bufnr(0))
      elseif server then
        targets.install(server, vim.api.nvim_get_current_buf())
      end
    end,
    words = { 'cuda', 'tpu' },
  },
  cancel = {
    run = function()
      local server = client()
      if server then targets.cancel(server) end
    end,
  },
  set = {
    run = function(set)
      local server, uri, name = here()
      if server then execute('jaxsight.chooseSet', uri, name, set) end
    end,
  },
  restart = {
    run = function()
      execute('jaxsight.restart')
    end,
  },
  trust = {
    run = function(folder)
      if trust.answer() then return end
      trust.expect()
      execute('jaxsight.trust', folder and vim.fn.fnamemodify(folder, ':p'))
    end,
  },
  prints = {
    run = function()
      vim.cmd('botright new')
      vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
      vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(table.concat(prints), '\n'))
    end,
  },
}

function M.run(words)
  local command = commands[words[1]]
  if not command then return vim.notify('Unknown subcommand of :Jaxsight: ' .. words[1], vim.log.levels.ERROR) end
  command.run(unpack(words, 2))
end

function M.complete(lead, line)
  local words = vim.split(line:gsub('^.-Jaxsight%s+', ''), '%s+')
  local known = vim.tbl_keys(commands)
  if #words > 1 then known = commands[words[1]] and commands[words[1]].words or {} end
  table.sort(known)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, known)
end

-- Calls `found` with the names of functions with example inputs, from code lenses.
local function with_examples(server, buffer, found)
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  server:request('textDocument/codeLens', params, function(_, lenses)
    local names = {}
    for _, lens in ipairs(lenses or {}) do
      local arguments = lens.command and lens.command.arguments
      if arguments and arguments[2] then names[arguments[2]] = true end
    end
    found(names)
  end, buffer)
end

-- Shows shapes at the ends of lines in a buffer in which another server shows types after names, unless they are placed by a setting.
function M.beside(buffer)
  local server = vim.lsp.get_clients({ bufnr = buffer, name = 'jaxsight' })[1]
  if not server or server.jaxsight_beside then return end
  local others = vim.tbl_filter(function(other)
    return other.name ~= 'jaxsight' and other.server_capabilities.inlayHintProvider
  end, vim.lsp.get_clients({ bufnr = buffer }))
  if #others == 0 or vim.tbl_get(server.settings, 'jaxsight', 'inlayHints', 'shapePosition') then return end
  server.jaxsight_beside = true
  server.settings = vim.tbl_deep_extend('force', server.settings, { jaxsight = { inlayHints = { shapePosition = 'line-end' } } })
  server:notify('workspace/didChangeConfiguration', { settings = server.settings })
end

-- A server was attached to a buffer.
function M.attached(server, buffer)
  if documents.is_made(buffer) then return end
  local first = vim.lsp.get_clients({ bufnr = buffer, name = 'jaxsight' })[1]
  if first and first.id ~= server.id then
    -- Another one, of another root or configuration, would show everything twice.
    vim.schedule(function()
      vim.lsp.buf_detach_client(buffer, math.max(first.id, server.id))
    end)
    return
  end
  if vim.g.jaxsight_hints ~= false then vim.lsp.inlay_hint.enable(true, { bufnr = buffer }) end
  local group = vim.api.nvim_create_augroup('jaxsight.' .. buffer, {})
  hints.watch(group, buffer)
  local timer = assert(vim.uv.new_timer())
  local last
  vim.api.nvim_create_autocmd('CursorMoved', {
    group = group,
    buffer = buffer,
    callback = function()
      documents.light()
      local name = functions.at(buffer, vim.api.nvim_win_get_cursor(0)[1])
      if name == nil or name == last then return end
      last = name
      timer:start(REST, 0, vim.schedule_wrap(function()
        if not vim.api.nvim_buf_is_valid(buffer) or vim.api.nvim_get_current_buf() ~= buffer then return end
        with_examples(server, buffer, function(names)
          if names[name] then documents.follow(buffer, name) end
        end)
      end))
    end,
  })
  vim.api.nvim_create_autocmd('CursorMoved', {
    group = group,
    pattern = 'jaxsight-*://*',
    callback = documents.light,
  })
  vim.api.nvim_create_autocmd('BufUnload', {
    group = group,
    buffer = buffer,
    callback = function()
      timer:stop()
      hints.forget(buffer)
    end,
  })
end

-- `jaxsight/status`
function M.told(status)
  statuses[status.root] = status
end

-- `jaxsight/fileStatus`
function M.told_file(status)
  files[status.uri] = status
end

-- `jaxsight/output`
function M.printed(output)
  table.insert(prints, ('--- %s\n%s'):format(vim.uri_to_fname(output.uri), output.text))
end

local PROBLEMS = { missing = 'compiler not installed', unreachable = 'host not reached', waiting = 'waits for approval' }

-- Returns what a file is compiled for, or what it needs.
local function about_file(file)
  if not file or not file.usesJax then return '' end
  if file.traced == 0 then return ' · no example inputs' end
  local problem = PROBLEMS[file.problem]
  return ' · ' .. file.target .. (problem and (': ' .. problem) or '')
end

-- Returns text for a status line: the JAX that traces the buffer's root, or its state, and the target.
function M.status()
  local name = vim.uri_from_bufnr(0)
  local best
  for root, status in pairs(statuses) do
    if vim.startswith(name, root) and (not best or #root > #best.root) then best = status end
  end
  if not best then return '' end
  if best.jax == '' then return 'jaxsight: ' .. best.state end
  return 'JAX ' .. best.jax .. about_file(files[name])
end

-- Returns the statuses of files whose target has a problem, for `:checkhealth`.
function M.troubled_files()
  return vim.tbl_filter(function(file)
    return file.problem ~= ''
  end, vim.tbl_values(files))
end

-- Returns the statuses of all roots, for `:checkhealth`.
function M.statuses()
  return vim.tbl_values(statuses)
end

return M
