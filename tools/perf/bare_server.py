"""The baseline of starts and of hovers: a pygls server that knows nothing, as its documentation
shows one.
"""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("bare", "1")


@server.feature(types.TEXT_DOCUMENT_HOVER)
async def hover(server: LanguageServer, params: types.HoverParams) -> types.Hover:
    """Always the same."""
    return types.Hover(
        contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value="{ lambda }")
    )


if __name__ == "__main__":
    server.start_io()
