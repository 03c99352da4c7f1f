"""Outlines and tokens of printed programs; which clients get their features, for which documents.

A client that registers features at run time gets them for our documents only. Others would request
them for Python files too, where some take the first server's answer, even an empty one (Helix 25.01
goes to the definition of one server only). They get these features if they opt in.
"""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.editor_views import KINDS, Symbol, folds, symbols, tokens
from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.lsp.client import REGISTERED, ClientFeatures, capability_of
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.lsp.documents.virtual_uris import scheme_of
from jaxsight.text.inert import one_line

_PROGRAMS: list[types.DocumentFilter] = [
    *(types.TextDocumentFilterScheme(scheme=scheme_of(language)) for language in LANGUAGES),
    *(types.TextDocumentFilterLanguage(language=language) for language in LANGUAGES),
]
_PYTHON = types.TextDocumentFilterLanguage(language="python")
_ANY = types.TextDocumentFilterLanguage(language="*")
"""VS Code takes call hierarchies from one server only, that with the best match.

This is the worst one, so that other servers have priority (`languageSelector.ts` in VS Code).
"""


_MORE: dict[str, types.DocumentFilter] = {
    types.TEXT_DOCUMENT_IMPLEMENTATION: _PYTHON,
    "textDocument/callHierarchy": _ANY,
}
"""Where else features are served, by their methods."""


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
    selector = _PROGRAMS + [more for at, more in _MORE.items() if at == method]
    if method == "textDocument/semanticTokens":
        return types.SemanticTokensRegistrationOptions(
            legend=LEGEND, document_selector=selector, full=True, range=True
        )
    return types.TextDocumentRegistrationOptions(document_selector=selector)


_KINDS = {
    "function": types.SymbolKind.Function,
    "operation": types.SymbolKind.Operator,
    "block": types.SymbolKind.Namespace,
}


async def _symbols(
    opened: ReadProgram, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol]:
    return await opened.compute(
        lambda: [_symbol(opened, symbol) for symbol in symbols(opened.program)]
    )


def _symbol(opened: ReadProgram, symbol: Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=one_line(symbol.name) or "(anonymous)",
        detail=one_line(symbol.detail),
        kind=_KINDS[symbol.kind],
        range=opened.range(symbol.start, symbol.end),
        selection_range=opened.range(symbol.name_start, symbol.name_end),
        children=[_symbol(opened, child) for child in symbol.children],
    )


async def _folds(opened: ReadProgram, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    kinds = types.FoldingRangeKind
    return [
        types.FoldingRange(fold.first, fold.last, kind=kinds.Comment if fold.is_comment else None)
        for fold in await opened.compute(lambda: folds(opened.program))
    ]


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
    """Serve outlines, folds and tokens, which are about printed programs alone."""
    for method, handler, options in (
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _symbols, None),
        (types.TEXT_DOCUMENT_FOLDING_RANGE, _folds, None),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _all, LEGEND),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _part, LEGEND),
    ):
        context.serve_programs(method, handler, options)
