"""`textDocument/inlayHint` and `inlayHint/resolve`: shapes after names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.convert import inlay_hint, markup
from jaxsight.text.inert import one_line

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer


async def hints(
    server: JaxsightServer, params: types.InlayHintParams
) -> list[types.InlayHint] | None:
    """Return the hints of a range.

    Tooltips are included unless the client resolves them later.
    """
    uri = params.text_document.uri
    view = server.documents.view(uri)
    if view is None:
        return None
    found = await server.session.hints(view.path, view.range(params.range))
    view = server.documents.view(uri)
    if view is None:
        return None
    results = []
    for hint in found:
        if not view.holds(hint.range):
            continue
        result = inlay_hint(view, hint)
        if hint.tooltip and server.client.resolves_tooltips:
            result.data = {"uri": uri}
        elif hint.tooltip:
            result.tooltip = markup(hint.tooltip, markdown=server.client.hover_markdown)
        results.append(result)
    return results


async def resolve(server: JaxsightServer, hint: types.InlayHint) -> types.InlayHint:
    """Return the hint with its tooltip, if the engine still shows this hint there."""
    uri = hint.data.get("uri") if isinstance(hint.data, dict) else None
    view = server.documents.view(uri) if isinstance(uri, str) else None
    if view is None:
        return hint
    line = types.Range(
        start=types.Position(line=hint.position.line, character=0), end=hint.position
    )
    there = view.position(hint.position)
    for known in await server.session.hints(view.path, view.range(line)):
        if known.range.end == there and one_line(known.label) == hint.label:
            hint.tooltip = markup(known.tooltip, markdown=server.client.hover_markdown)
    return hint


def register(server: JaxsightServer) -> None:
    """Serve hints."""
    server.answers(types.TEXT_DOCUMENT_INLAY_HINT, hints)

    async def answer(hint: types.InlayHint) -> types.InlayHint:
        return await resolve(server, hint)

    server.feature(types.INLAY_HINT_RESOLVE)(answer)
