"""The panel in a browser, for editors that have no room for a page.

`http_server.py` serves one user's browser on this machine, and nobody else; `following.py` decides
what a page shows, as `vscode-extension/src/panel/panel.ts` does in VS Code; `pages.py` puts both
together: the command, the pages that are open, and the editor's cursor.
"""
