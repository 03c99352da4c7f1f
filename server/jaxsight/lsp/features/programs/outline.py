"""The outline of a printed program, and what can be folded in it."""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.outline import Symbol, folds, symbols
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram
from jaxsight.text.inert import one_line

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


def register(context: ClientContext) -> None:
    """Serve both requests."""
    context.serve_programs(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _symbols)
    context.serve_programs(types.TEXT_DOCUMENT_FOLDING_RANGE, _folds)
