"""Semantic tokens of printed programs, and of nothing else."""

from __future__ import annotations

from lsprotocol import types

from jaxsight.features.printed_programs.tokens import KINDS, tokens
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.printed import ReadProgram

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
    """Serve the tokens of a whole text and of a part of it."""
    context.serve_programs(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _all, LEGEND)
    context.serve_programs(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _part, LEGEND)
