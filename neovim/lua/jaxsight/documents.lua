-- Generated documents in a split beside the source. The cursor in one highlights the corresponding lines of the other.

local M = {}

local lit = vim.api.nvim_create_namespace('jaxsight.lit')
local FILETYPES = { jaxpr = 'jaxpr', stablehlo = 'mlir', hlo = 'hlo', lax = 'python', pretty = 'python' }
local SHOW = 'jaxsight.show'
local OPEN_PROFILE = 'jaxsight.openProfile'
-- Kinds of documents that the server reads: definitions and references of their names.
local PROGRAMS = { jaxpr = true, stablehlo = true, hlo = true }

-- By buffer: { client, uri, kind, arguments, links }.
local made = {}

local function buffer_of(uri)
  for buffer, document in pairs(made) do
    if document.uri == uri and vim.api.nvim_buf_is_valid(buffer) then return buffer end
  end
end

local function put(buffer, text)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

-- Loads the current text and links of a document.
local function load(buffer)
  local document = made[buffer]
  document.client:request('jaxsight/textDocumentContent', { uri = document.uri }, function(problem, content)
    if problem or not content or not vim.api.nvim_buf_is_valid(buffer) then return end
    put(buffer, content.text)
    document.links = content.links
    M.light()
  end)
end

-- Returns the split for generated documents in this tab page.
local function split()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if made[vim.api.nvim_win_get_buf(window)] then return window end
  end
  vim.cmd('rightbelow vsplit')
  local window = vim.api.nvim_get_current_win()
  vim.cmd('wincmd p')
  return window
end

-- Shows what a command makes of `{ file, function, … }` beside the source; the cursor does not move.
-- By default, that is a document: `{ file, function, kind, transformation }`.
function M.show(client, arguments, name)
  local command = { command = name or SHOW, arguments = arguments }
  client:request('workspace/executeCommand', command, function(problem, shown)
    if problem then return vim.notify(problem.message, vim.log.levels.WARN) end
    if not shown or shown == vim.NIL then return end -- The server has shown the reason.
    local kind = command.command == SHOW and (arguments[3] or 'jaxpr') or command.command ~= OPEN_PROFILE and 'pretty'
    local buffer = buffer_of(shown.uri)
    if not buffer then
      buffer = vim.api.nvim_create_buf(false, true)
      vim.bo[buffer].bufhidden = 'wipe'
      -- The name is a URI with slashes, so that it is not made relative to the current folder.
      vim.api.nvim_buf_set_name(buffer, (shown.uri:gsub(':/*', ':///', 1)))
      vim.bo[buffer].filetype = FILETYPES[kind] or ''
      local followed = command.command == SHOW and arguments or nil
      made[buffer] = { client = client, uri = shown.uri, arguments = followed, links = {} }
      vim.api.nvim_create_autocmd('BufWipeout', {
        buffer = buffer,
        callback = function()
          made[buffer] = nil
        end,
      })
    end
    put(buffer, shown.text)
    if PROGRAMS[kind] then vim.lsp.buf_attach_client(buffer, client.id) end
    vim.b[buffer].jaxsight_file = shown.file
    vim.api.nvim_win_set_buf(split(), buffer)
    load(buffer)
  end)
end

-- Whether a buffer shows a generated document.
function M.is_made(buffer)
  return vim.startswith(vim.api.nvim_buf_get_name(buffer), 'jaxsight-')
end

-- The text of a document has changed.
function M.refresh(uri)
  local buffer = buffer_of(uri)
  if buffer then load(buffer) end
end

local function byte(buffer, line, character, encoding)
  local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] or ''
  return vim.str_byteindex(text, encoding, character, false)
end

-- Returns rows and byte columns (from 0) of a link's range in a buffer.
local function range_of(buffer, link, encoding)
  local from, to = link.range.start, link.range['end']
  return from.line,
    byte(buffer, from.line, from.character, encoding),
    to.line,
    byte(buffer, to.line, to.character, encoding)
end

local function mark(buffer, row, column, last, after, namespace)
  vim.api.nvim_buf_set_extmark(buffer, namespace or lit, row, column, {
    end_row = last,
    end_col = after,
    hl_group = 'LspReferenceText',
    hl_eol = true,
    strict = false,
  })
end

local function holds(row, column, range)
  local first, from, last, to = unpack(range)
  return not (row < first or row > last or (row == first and column < from) or (row == last and column > to))
end

-- Returns the innermost of nested expressions around the cursor.
local function innermost(found)
  local least = math.huge
  for _, each in ipairs(found) do
    least = math.min(least, each.size)
  end
  return vim.tbl_filter(function(each)
    return each.size == least
  end, found)
end

local function light_made(window, buffer, source, row, column)
  local document = made[buffer]
  local uri = vim.uri_from_bufnr(source)
  local found = {}
  for _, link in ipairs(document.links) do
    if link.uri == uri and link.range ~= vim.NIL then
      local range = { range_of(source, link, document.client.offset_encoding) }
      if holds(row, column, range) then
        table.insert(found, { line = link.line, size = (range[3] - range[1]) * 10000 + range[4] - range[2] })
      end
    end
  end
  local first
  for _, each in ipairs(innermost(found)) do
    mark(buffer, each.line, 0, each.line + 1, 0)
    first = math.min(first or each.line, each.line)
  end
  if first then vim.api.nvim_win_set_cursor(window, { first + 1, 0 }) end
end

local function light_source(source, document, row)
  local uri = vim.uri_from_bufnr(source)
  for _, link in ipairs(document.links) do
    if link.line == row and link.uri == uri and link.range ~= vim.NIL then
      mark(source, range_of(source, link, document.client.offset_encoding))
    end
  end
end

-- Highlights places of source files, in a namespace that has no others.
function M.light_places(places, encoding, namespace)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1) end
  end
  for _, place in ipairs(places) do
    local buffer = vim.fn.bufnr(vim.uri_to_fname(place.uri))
    if buffer > 0 and vim.api.nvim_buf_is_loaded(buffer) then
      local row, column, last, after = range_of(buffer, place, encoding)
      mark(buffer, row, column, last, after, namespace)
    end
  end
end

-- Highlights the lines that correspond to the cursor, in the other windows of this tab page.
function M.light()
  local current = vim.api.nvim_get_current_buf()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local here = made[current]
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local buffer = vim.api.nvim_win_get_buf(window)
    vim.api.nvim_buf_clear_namespace(buffer, lit, 0, -1)
    if buffer ~= current then
      if here then
        light_source(buffer, here, row - 1)
      elseif made[buffer] then
        light_made(window, buffer, current, row - 1, column)
      end
    end
  end
end

-- Shows the same kind of document for another function, if a document of this file is visible.
function M.follow(buffer, name)
  local uri = vim.uri_from_bufnr(buffer)
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local document = made[vim.api.nvim_win_get_buf(window)]
    local arguments = document and document.arguments
    if arguments and arguments[1] == uri and arguments[2] ~= name then
      M.show(document.client, { uri, name, unpack(arguments, 3) })
      return
    end
  end
end

return M
