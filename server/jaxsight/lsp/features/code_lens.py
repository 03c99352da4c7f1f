"""`textDocument/codeLens`: lines above functions; a click runs a command."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import notice


async def lenses(
    context: ClientContext, params: types.CodeLensParams
) -> list[types.CodeLens] | None:
    """Return the engine's lenses in this document."""
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is None:
        return None
    engine_lenses = await context.session.lenses(view.path)
    view = context.documents.view(uri)
    if view is None:
        return None
    return [
        types.CodeLens(
            range=view.to_range(lens.range),
            command=types.Command(
                title=notice(lens.title), command=lens.command, arguments=list(lens.arguments)
            ),
        )
        for lens in engine_lenses
        if view.holds(lens.range)
    ]


def register(context: ClientContext) -> None:
    """Serve lenses."""
    context.serve(types.TEXT_DOCUMENT_CODE_LENS, partial(lenses, context))
