"""`jaxsight mcp`: the commands that coding agents need, as tools of the Model Context Protocol."""
