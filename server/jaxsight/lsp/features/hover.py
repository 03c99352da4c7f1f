"""`textDocument/hover`: types and figures for the name under the cursor."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jaxsight.lsp.context import Context
from jaxsight.lsp.convert import markup
from jaxsight.timeline import mark

_SIGNED = "*jaxsight*"
"""The last line of a hover: editors show those of several servers one below another."""


async def answer(context: Context, params: types.HoverParams) -> types.Hover | None:
    """Return the engine's hover, in the markup that the client supports."""
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is None:
        return None
    hover = await context.session.hover(view.path, view.position(params.position))
    view = context.documents.view(uri)
    if hover is None or view is None:
        return None
    mark("hover answered")
    return types.Hover(
        contents=markup(f"{hover.markdown}\n\n{_SIGNED}", markdown=context.client.hover_markdown),
        range=view.to_range(hover.range),
    )


def register(context: Context) -> None:
    """Serve hovers."""
    context.serve(types.TEXT_DOCUMENT_HOVER, partial(answer, context))
