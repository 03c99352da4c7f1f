"""`textDocument/inlayHint` and `inlayHint/resolve`: shapes after names."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import inlay_hint, label_text, markup
from jaxsight.text.inert import one_line
from jaxsight.timeline import mark


async def answer(
    context: ClientContext, params: types.InlayHintParams
) -> list[types.InlayHint] | None:
    """Return the hints of a range.

    Tooltips are included unless the client resolves them later.
    """
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is None:
        return None
    hints = await context.session.hints(view.path, view.range(params.range))
    view = context.documents.view(uri)
    if view is None:
        return None
    answers = []
    for hint in (each for each in hints if view.holds(each.range)):
        answer = inlay_hint(view, hint)
        if hint.tooltip and context.client.resolves_tooltips:
            answer.data = {"uri": uri}
        elif hint.tooltip:
            answer.tooltip = markup(hint.tooltip, markdown=context.client.hover_markdown)
        answers.append(answer)
    mark("hints answered")
    return answers


async def resolve(context: ClientContext, hint: types.InlayHint) -> types.InlayHint:
    """Return the hint with its tooltip, if the engine still shows this hint there."""
    uri = hint.data.get("uri") if isinstance(hint.data, dict) else None
    view = context.documents.view(uri) if isinstance(uri, str) else None
    if view is None:
        return hint
    line = types.Range(types.Position(hint.position.line, 0), hint.position)
    position = view.position(hint.position)
    for current in await context.session.hints(view.path, view.range(line)):
        if current.range.end == position and one_line(current.label) == label_text(hint):
            hint.tooltip = markup(current.tooltip, markdown=context.client.hover_markdown)
    return hint


def register(context: ClientContext) -> None:
    """Serve hints."""
    context.serve(types.TEXT_DOCUMENT_INLAY_HINT, partial(answer, context))
    context.connection.feature(types.INLAY_HINT_RESOLVE)(partial(resolve, context))
