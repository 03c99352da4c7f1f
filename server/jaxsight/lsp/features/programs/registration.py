"""Colours of printed programs; which clients get their features, for which documents.

A client that registers features at run time gets them for our documents only. Others would request
them for Python files too, where some take the first server's answer, even an empty one (Helix 25.01
goes to the definition of one server only). They get these features if they opt in.
"""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.editor_views import KINDS, tokens
from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.lsp.client import REGISTERED, ClientFeatures, capability_of
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.lsp.documents.virtual_uris import scheme_of

_PROGRAMS: list[types.DocumentFilter] = [
    *(types.TextDocumentFilterScheme(scheme=scheme_of(language)) for language in LANGUAGES),
    *(types.TextDocumentFilterLanguage(language=language) for language in LANGUAGES),
]
_PYTHON = types.TextDocumentFilterLanguage(language="python")


def _provider(method: str) -> str:
    return f"{capability_of(method)}_provider"


def limit(
    capabilities: types.ServerCapabilities, client: ClientFeatures, *, opted_in: bool
) -> None:
    """Remove the capabilities that are registered later, or that the client does not get."""
    for method in REGISTERED:
        if method in client.registers or not opted_in:
            setattr(capabilities, _provider(method), None)


def registrations(client: ClientFeatures) -> list[types.Registration]:
    """Return what to register once the client is initialized."""
    return [
        types.Registration(f"jaxsight/{_provider(method)}", method, _options(method))
        for method in REGISTERED
        if method in client.registers
    ]


def _options(
    method: str,
) -> types.TextDocumentRegistrationOptions | types.SemanticTokensRegistrationOptions:
    selector = _PROGRAMS + [_PYTHON] * (method == types.TEXT_DOCUMENT_IMPLEMENTATION)
    if method == "textDocument/semanticTokens":
        return types.SemanticTokensRegistrationOptions(
            legend=LEGEND, document_selector=selector, full=True, range=True
        )
    return types.TextDocumentRegistrationOptions(document_selector=selector)


_LONGEST = 1_000_000
"""Characters of the longest text whose tokens are sent at once, a choice: five integers each, so
the answer is about as long. Clients request the visible part of others."""

_MODIFIERS = ("declaration", "defaultLibrary")

LEGEND = types.SemanticTokensLegend(token_types=list(KINDS), token_modifiers=list(_MODIFIERS))


async def _all(
    opened: ReadProgram, params: types.SemanticTokensParams
) -> types.SemanticTokens | None:
    if len(opened.program.text) > _LONGEST:
        return None
    return await opened.compute(lambda: _encoded(opened, 0, len(opened.program.lines)))


async def _part(
    opened: ReadProgram, params: types.SemanticTokensRangeParams
) -> types.SemanticTokens:
    first, last = params.range.start.line, params.range.end.line
    return await opened.compute(lambda: _encoded(opened, first, last))


def _encoded(opened: ReadProgram, first: int, last: int) -> types.SemanticTokens:
    """Encode the tokens of some lines, each relative to the one before."""
    program, units = opened.program, opened.view.units
    data: list[int] = []
    line = column = 0
    here, text = -1, ""
    for token in tokens(program, first, last):
        if (number := program.line(token.start)) != here:
            here, text = number, opened.view.document.line(number)
        start = units.units(text, token.start - program.lines[here])
        length = units.units(text, token.end - program.lines[here]) - start
        modifiers = token.is_definition | token.is_primitive << 1
        kind = KINDS.index(token.kind)
        data += (here - line, start - (column if here == line else 0), length, kind, modifiers)
        line, column = here, start
    return types.SemanticTokens(data=data)


def register(context: ClientContext) -> None:
    """Serve colours, which are about printed programs alone."""
    context.serve_programs(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _all, LEGEND)
    context.serve_programs(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _part, LEGEND)
