"""`textDocument/hover` in printed programs: what the operation under the cursor does."""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.explained_operations.printed import explained_at
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import markup


async def operation_hover(context: ClientContext, params: types.HoverParams) -> types.Hover | None:
    """Return the explanation of an operation in an open printed program, if there is one."""
    opened = await context.program(params.text_document.uri)
    if opened is None:
        return None
    offset = opened.offset(params.position)
    found = await opened.compute(lambda: explained_at(opened.program, offset))
    if found is None:
        return None
    operation, start, end = found
    return types.Hover(
        contents=markup(operation.markdown, markdown=context.client.hover_markdown),
        range=opened.range(start, end),
    )
