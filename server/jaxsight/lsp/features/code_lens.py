"""`textDocument/codeLens`: lines above functions; a click runs a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.convert import notice

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer


async def lenses(
    server: JaxsightServer, params: types.CodeLensParams
) -> list[types.CodeLens] | None:
    """Return the engine's lenses in this document."""
    uri = params.text_document.uri
    view = server.documents.view(uri)
    if view is None:
        return None
    found = await server.session.lenses(view.path)
    view = server.documents.view(uri)
    if view is None:
        return None
    return [
        types.CodeLens(
            range=view.to_range(lens.range),
            command=types.Command(
                title=notice(lens.title), command=lens.command, arguments=list(lens.arguments)
            ),
        )
        for lens in found
        if view.holds(lens.range)
    ]


def register(server: JaxsightServer) -> None:
    """Serve lenses."""
    server.answers(types.TEXT_DOCUMENT_CODE_LENS, lenses)
