"""What editors show in a text: hints after names, lenses above functions, and completions.

They are `textDocument/inlayHint` with `inlayHint/resolve`, `textDocument/codeLens`, and
`textDocument/completion` in sections with example inputs.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from lsprotocol import types

from jaxsight.features.virtual_documents.sourcerized import is_program_file
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import completion_item, inlay_hint, label_text, markup, notice
from jaxsight.lsp.documents.uris import path_of
from jaxsight.text.inert import one_line
from jaxsight.timeline import mark


async def hints(
    context: ClientContext, params: types.InlayHintParams
) -> list[types.InlayHint] | None:
    """Return the hints of a range.

    Tooltips are included unless the client resolves them later.
    """
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is None:
        return None
    found = await context.session.hints(view.path, view.range(params.range))
    view = context.documents.window_of(uri)
    if view is None:
        return None
    answers = []
    for hint in (each for each in found if view.holds(each.range)):
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
    view = context.documents.window_of(uri) if isinstance(uri, str) else None
    if view is None:
        return hint
    line = types.Range(types.Position(hint.position.line, 0), hint.position)
    position = view.position(hint.position)
    for current in await context.session.hints(view.path, view.range(line)):
        if current.range.end == position and one_line(current.label) == label_text(hint):
            hint.tooltip = markup(current.tooltip, markdown=context.client.hover_markdown)
    return hint


async def lenses(
    context: ClientContext, params: types.CodeLensParams
) -> list[types.CodeLens] | None:
    """Return the engine's lenses in this document, or that of a program's file."""
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is None:
        return _of_program(context, uri)
    engine_lenses = await context.session.lenses(view.path)
    view = context.documents.window_of(uri)
    if view is None:
        return None
    return [
        types.CodeLens(
            view.to_range(lens.range),
            types.Command(notice(lens.title), lens.command, arguments=list(lens.arguments)),
        )
        for lens in engine_lenses
        if view.holds(lens.range)
    ]


def _of_program(context: ClientContext, uri: str) -> list[types.CodeLens] | None:
    path, start = path_of(uri), types.Position(0, 0)
    if path is None or not is_program_file(path):
        return None
    arguments = [uri, PurePath(path).stem, "pretty"]
    command = types.Command("show as JAX source", "jaxsight.show", arguments=arguments)
    return [types.CodeLens(range=types.Range(start, start), command=command)]


TRIGGERS = (":", " ", ",", "[", "(", "=", "<")
"""Characters that a name, a dtype or a size may follow."""


async def complete(
    context: ClientContext, params: types.CompletionParams
) -> types.CompletionList | None:
    """Return the engine's proposals, in its order."""
    uri = params.text_document.uri
    view = context.documents.window_of(uri)
    if view is None:
        return None
    completions = await context.session.completions(view.path, view.position(params.position))
    view = context.documents.window_of(uri)
    if not completions or view is None:
        return None
    proposals = [
        completion_item(view, completion, order) for order, completion in enumerate(completions)
    ]
    return types.CompletionList(is_incomplete=False, items=proposals)


def register(context: ClientContext) -> None:
    """Serve hints, lenses and completions."""
    context.serve(types.TEXT_DOCUMENT_INLAY_HINT, partial(hints, context))
    context.connection.feature(types.INLAY_HINT_RESOLVE)(partial(resolve, context))
    context.serve(types.TEXT_DOCUMENT_CODE_LENS, partial(lenses, context))
    options = types.CompletionOptions(trigger_characters=list(TRIGGERS))
    context.serve(types.TEXT_DOCUMENT_COMPLETION, partial(complete, context), options)
