"""`textDocument/hover`: types and figures for the name under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.convert import markup

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer


async def hover(server: JaxsightServer, params: types.HoverParams) -> types.Hover | None:
    """Return the engine's hover, in the markup that the client supports."""
    uri = params.text_document.uri
    view = server.documents.view(uri)
    if view is None:
        return None
    found = await server.session.hover(view.path, view.position(params.position))
    view = server.documents.view(uri)
    if found is None or view is None:
        return None
    return types.Hover(
        contents=markup(found.markdown, markdown=server.client.hover_markdown),
        range=view.to_range(found.range),
    )


def register(server: JaxsightServer) -> None:
    """Serve hovers."""
    server.answers(types.TEXT_DOCUMENT_HOVER, hover)
