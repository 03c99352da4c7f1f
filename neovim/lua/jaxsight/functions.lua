-- Finds the function at the cursor from the text.

local M = {}

-- Returns the qualified name (`Model.loss`) of the outermost function around a line (from 1).
function M.at(buffer, line)
  local heads = {}
  local indent = math.huge
  for at = line, 1, -1 do
    local text = vim.api.nvim_buf_get_lines(buffer, at - 1, at, false)[1] or ''
    local bare = vim.trim(text)
    if bare ~= '' and bare:sub(1, 1) ~= '#' then
      local width = #text:match('^%s*')
      local plain = bare:gsub('^async%s+', '')
      local kind, name = plain:match('^(def)%s+([%w_]+)')
      if not kind then
        kind, name = plain:match('^(class)%s+([%w_]+)')
      end
      if kind and width < indent then table.insert(heads, 1, { kind = kind, name = name }) end
      -- A decorator of the function below, or its first line, is inside it; lines further left are not.
      indent = math.min(indent, (not kind and at == line) and width + 1 or width)
      if indent == 0 then break end
    end
  end
  local names = {}
  for _, head in ipairs(heads) do
    table.insert(names, head.name)
    if head.kind == 'def' then return table.concat(names, '.') end
  end
end

return M
