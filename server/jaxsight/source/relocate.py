"""The current range of a tracer's span, and the expressions at a position.

A tracer knows chunks as they were when it executed them. While a chunk means the same, every node
of its syntax tree has a counterpart in the current text, so spans are moved exactly. Otherwise they
are shifted through the edit, or are gone.
"""

from __future__ import annotations

import ast
import functools

from jaxsight.source.analysis import syntax_digest
from jaxsight.source.definitions import name_of_argument
from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import statement_of, tree_of
from jaxsight.source.text import Position, Range, SourceText
from jaxsight.source.text_shift import shift_between
from jaxsight.wire.chunks import Span

_MAPS_KEPT = 64
"""Pairs of texts whose positions are kept: those of the chunks of the open functions."""

Pair = tuple[int, int]
"""A line (from 1) and a column in bytes, as in syntax trees."""


def relocate(span: Span, traced_text: str, now: ModuleChunk) -> Range | None:
    """Return the span's range in the module, absolute; `None` if it is gone.

    Args:
        traced_text: the text of the chunk when it was traced.
        now: the chunk that takes its place now.
    """
    range = _within(span, traced_text, now.text)
    return range.shifted(now.first_line) if range is not None else None


def _within(span: Span, old: str, new: str) -> Range | None:
    source = _source(old)
    if old == new:
        return _range(source, (span.line, span.column), (span.end_line, span.end_column))
    if statement_of(old).meaning == statement_of(new).meaning and statement_of(new).broken is None:
        starts, ends = _carried(old, new)
        start = starts.get((span.line, span.column))
        end = ends.get((span.end_line, span.end_column))
        if start is not None and end is not None:
            return _range(_source(new), start, end)
    old_range = _range(source, (span.line, span.column), (span.end_line, span.end_column))
    return shift_between(old, new).range(old_range) if old_range is not None else None


_PLACED = (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.alias, ast.excepthandler, ast.pattern)


@functools.lru_cache(maxsize=_MAPS_KEPT)
def _carried(old: str, new: str) -> tuple[dict[Pair, Pair], dict[Pair, Pair]]:
    """Return where nodes begin and where they end in another text with the same meaning."""
    starts: dict[Pair, Pair] = {}
    ends: dict[Pair, Pair] = {}
    for before, after in syntax_digest.paired(tree_of(old), tree_of(new)):
        if not isinstance(before, _PLACED) or not isinstance(after, _PLACED):
            continue
        starts[before.lineno, before.col_offset] = after.lineno, after.col_offset
        if before.end_lineno is not None and after.end_lineno is not None:
            end = after.end_lineno, after.end_col_offset or 0
            ends[before.end_lineno, before.end_col_offset or 0] = end
        # In the tree a parameter ends after its annotation; a tracer reports its name alone.
        if isinstance(before, ast.arg) and before.annotation is not None:
            length = len(before.arg.encode())
            ends[before.lineno, before.col_offset + length] = (
                after.lineno,
                after.col_offset + length,
            )
    return starts, ends


_source = functools.lru_cache(maxsize=_MAPS_KEPT)(SourceText)


def _range(source: SourceText, start: Pair, end: Pair) -> Range | None:
    if not all(1 <= line <= len(source.lines) for line, _ in (start, end)):
        return None
    return Range(source.position(*start), source.position(*end))


def expressions_at(chunk: ModuleChunk, position: Position) -> tuple[Range, ...]:
    """Return the expressions and parameters at a position, innermost first.

    All positions are absolute. At `x` of `x.T` the first is `x`, at `T` it is `x.T`; at `sum` of
    `jnp.sum(x)` it is `jnp.sum`, then the call. A position right after a word counts as in it.
    There are none at blank space or in a text that does not parse.
    """
    if chunk.broken is not None or not chunk.first_line <= position.line <= chunk.last_line:
        return ()
    source = _source(chunk.text)
    inside = position.up(chunk.first_line)
    line = source.lines[inside.line]
    if inside.column >= len(line) or line[inside.column].isspace():
        if inside.column == 0 or not _is_word(line[inside.column - 1 : inside.column]):
            return ()
        inside = Position(inside.line, inside.column - 1)
    elif not _is_word(line[inside.column]) and _is_word(line[max(inside.column - 1, 0)]):
        inside = Position(inside.line, inside.column - 1)
    return tuple(r.shifted(chunk.first_line) for r in _holding(chunk.text, inside))


def _is_word(character: str) -> bool:
    return character.isidentifier() or character.isdigit()


def _holding(text: str, position: Position) -> list[Range]:
    """Return the ranges of the expressions around a position, innermost first."""
    source = _source(text)
    ranges: list[Range] = []
    stack: list[ast.AST] = [tree_of(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
            lines = range(node.lineno - 1, node.end_lineno or node.lineno)
            if position.line not in lines:
                # Decorators come before the range of their statement.
                stack.extend(getattr(node, "decorator_list", ()))
                continue
        if isinstance(node, ast.expr):
            ranges.append(source.range(node))
        elif isinstance(node, ast.arg):
            ranges.append(name_of_argument(node, source))
        stack.extend(ast.iter_child_nodes(node))
    holding = {r for r in ranges if r.start <= position < r.end}
    return sorted(holding, key=lambda r: (-r.start.line, -r.start.column, r.end))
