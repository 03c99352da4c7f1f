"""`textDocument/codeLens`: lines above functions; a click runs a command."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from lsprotocol import types

from jaxsight.features.virtual_documents.sourcerized import is_program_file
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.uris import path_of


async def lenses(
    context: ClientContext, params: types.CodeLensParams
) -> list[types.CodeLens] | None:
    """Return the engine's lenses in this document, or that of a program's file."""
    uri = params.text_document.uri
    view = context.documents.view(uri)
    if view is None:
        return _of_program(context, uri)
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


def _of_program(context: ClientContext, uri: str) -> list[types.CodeLens] | None:
    path = path_of(uri)
    if path is None or not is_program_file(path):
        return None
    start = types.Position(0, 0)
    arguments = [uri, PurePath(path).stem, "pretty"]
    command = types.Command(
        title="show as JAX source", command="jaxsight.show", arguments=arguments
    )
    return [types.CodeLens(range=types.Range(start, start), command=command)]


def register(context: ClientContext) -> None:
    """Serve lenses."""
    context.serve(types.TEXT_DOCUMENT_CODE_LENS, partial(lenses, context))
