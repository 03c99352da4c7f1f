-- What the tests call in Neovim. Results are JSON, because remote expressions carry text only.
T = {}

-- The value of a chunk of Lua, or its error with a traceback.
function T.run(code)
  local chunk, problem = load(code)
  if not chunk then return vim.json.encode({ error = problem }) end
  local ok, value = xpcall(chunk, debug.traceback)
  return vim.json.encode(ok and { ok = true, value = value } or { error = tostring(value) })
end

-- What a function returns as soon as that is neither nil, false nor an empty table; `describe` says what there is instead.
function T.wait(milliseconds, look, describe)
  local found
  local done = vim.wait(milliseconds, function()
    found = look()
    return found ~= nil and found ~= false and not (type(found) == 'table' and next(found) == nil)
  end, 20)
  if not done then
    local instead = describe and describe() .. '\n' or ''
    error('it did not come to pass; ' .. instead .. 'the log ends with:\n' .. T.log())
  end
  return found
end

function T.log()
  local file = vim.lsp.get_log_path()
  if vim.fn.filereadable(file) == 0 then return '(empty)' end
  return table.concat(vim.fn.readfile(file, '', -8), '\n')
end

-- Line and column (from 0) of a piece of the buffer's text, `offset` bytes into it.
local function position(needle, offset)
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  local at = text:find(needle, 1, true)
  if not at then error('the buffer does not hold: ' .. needle) end
  local before = text:sub(1, at - 1 + offset)
  local _, line = before:gsub('\n', '')
  return line, #before:match('[^\n]*$')
end

-- The cursor to where `|` stands in a piece of text, which is scrolled to the top: hints are drawn on what is to be seen.
function T.place(marked)
  local line, column = position((marked:gsub('|', '', 1)), marked:find('|', 1, true) - 1)
  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  vim.cmd('normal! zt')
end

local function floats()
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_config(window).relative ~= ''
  end, vim.api.nvim_list_wins())
end

-- The text of the float that `vim.lsp.buf.hover` opens, once it says one thing and not another. What is asked while the
-- server is not ready may have no answer, or an older one: it is asked again.
function T.hover(milliseconds, says, says_not)
  local shown
  return T.wait(milliseconds, function()
    for _, window in ipairs(floats()) do vim.api.nvim_win_close(window, true) end
    vim.lsp.buf.hover()
    if not vim.wait(5000, function() return floats()[1] ~= nil end, 20) then return nil end
    local buffer = vim.api.nvim_win_get_buf(floats()[1])
    shown = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
    return shown:find(says, 1, true) and (says_not == '' or not shown:find(says_not, 1, true)) and shown
  end, function() return shown and 'the last hover said:\n' .. shown or 'no hover came' end)
end

-- The labels that are drawn, by `line:text before it`.
function T.hints()
  vim.cmd('redraw')
  local drawn = {}
  for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
    if name:match('inlay') then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
        local text = mark[4].virt_text
        if text then
          local line = vim.api.nvim_buf_get_lines(0, mark[2], mark[2] + 1, false)[1]
          local word = line:sub(1, mark[3]):match('[%w_]+$') or line
          drawn[(mark[2] + 1) .. ':' .. word] = table.concat(vim.tbl_map(function(part) return part[1] end, text))
        end
      end
    end
  end
  return drawn
end

-- The hints but those that say why a function is not shown, which come once a session is at rest.
function T.shapes()
  local shapes = {}
  for after, label in pairs(T.hints()) do
    if not label:match('^ not shown: ') then shapes[after] = label end
  end
  return shapes
end

-- One change of the buffer's text, as typing makes it.
function T.replace(old, new)
  local line, column = position(old, 0)
  local last_line, last_column = position(old, #old)
  vim.api.nvim_buf_set_text(0, line, column, last_line, last_column, vim.split(new, '\n'))
end
