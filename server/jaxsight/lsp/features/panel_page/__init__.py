"""The panel in a browser, for editors that have no room for a page.

`http_server.py` serves one user's browser on this machine, and nobody else; `pages.py` has the
command, and passes requests of pages to what serves the editor's. What a page shows, and when,
decides `vscode-extension/panel/src/following.ts`, as in VS Code.
"""
