"""`textDocument/completion`: proposals in sections with example inputs."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import completion_item

TRIGGERS = (":", " ", ",", "[", "(", "=", "<")
"""Characters that a name, a dtype or a size may follow."""


async def complete(
    context: ClientContext, params: types.CompletionParams
) -> types.CompletionList | None:
    """Return the engine's proposals, in its order."""
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is None:
        return None
    completions = await context.session.completions(view.path, view.position(params.position))
    view = context.documents.view(uri)
    if not completions or view is None:
        return None
    markdown = context.client.completion_markdown
    proposals = [
        completion_item(view, completion, order, markdown=markdown)
        for order, completion in enumerate(completions)
    ]
    return types.CompletionList(is_incomplete=False, items=proposals)


def register(context: ClientContext) -> None:
    """Serve completion."""
    options = types.CompletionOptions(trigger_characters=list(TRIGGERS))
    context.serve(types.TEXT_DOCUMENT_COMPLETION, partial(complete, context), options)
