"""`textDocument/completion`: proposals in sections with example inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from jaxsight.lsp.convert import completion_item

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

TRIGGERS = (":", " ", ",", "[", "(", "=", "<")
"""Characters that a name, a dtype or a size may follow."""


async def complete(
    server: JaxsightServer, params: types.CompletionParams
) -> types.CompletionList | None:
    """Return the engine's proposals, in its order."""
    uri = params.text_document.uri
    view = server.documents.view(uri)
    if view is None:
        return None
    found = await server.session.completions(view.path, view.position(params.position))
    view = server.documents.view(uri)
    if not found or view is None:
        return None
    markdown = server.client.completion_markdown
    items = [
        completion_item(view, proposal, order, markdown=markdown)
        for order, proposal in enumerate(found)
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def register(server: JaxsightServer) -> None:
    """Serve completion."""
    options = types.CompletionOptions(trigger_characters=list(TRIGGERS))
    server.answers(types.TEXT_DOCUMENT_COMPLETION, complete, options)
