"""Read patterns and fill templates."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from jaxsight.rules.text.expressions import bracketed, negated
from jaxsight.text.parsing import quiet

Subject = TypeVar("Subject")
Found = TypeVar("Found")


@functools.cache
def pattern(text: str) -> ast.expr:
    """Return the syntax of a pattern."""
    with quiet():
        return ast.parse(text, mode="eval").body


@functools.cache
def expanded(text: str, argument: ast.expr) -> ast.expr:
    """Return the syntax of a pattern with an argument in place of its `_`."""
    return _renamed(pattern(text), {"_": argument})


def number_of(node: ast.expr) -> float | None:
    """Return the number that a part of a pattern, or an expression, is; it may have a sign."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case _:
            return None


def hole_of(node: ast.expr) -> str:
    """Return the name of the hole that a part of a pattern is, else an empty text."""
    node = node.value if isinstance(node, ast.Starred) else node
    return node.id if isinstance(node, ast.Name) else ""


def called_by(node: ast.expr) -> str:
    """Return the name that a part of a pattern calls, else an empty text."""
    return hole_of(node.func) if isinstance(node, ast.Call) else ""


def operands_of(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """Return the terms of a sum, or the factors of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [*operands_of(node.left, operator), *operands_of(node.right, operator)]
    return [node]


def in_order(
    terms: Sequence[ast.expr],
    subjects: Sequence[Subject],
    found: Found,
    match: Callable[[ast.expr, Subject, Found], Iterator[Found]],
) -> Iterator[Found]:
    """Yield the ways in which the parts of a pattern are some subjects, one after the other."""
    if len(terms) == len(subjects):
        for longer in match(terms[0], subjects[0], found):
            if terms[1:]:
                yield from in_order(terms[1:], subjects[1:], longer, match)
            else:
                yield longer


def in_any_order(
    terms: Sequence[ast.expr],
    subjects: Sequence[Subject],
    found: Found,
    match: Callable[[ast.expr, Subject, Found], Iterator[Found]],
) -> Iterator[Found]:
    """Yield the ways in which the terms of a pattern are all of some subjects."""
    first, *others = terms
    repeated = isinstance(terms[-1], ast.Constant) and terms[-1].value is ...
    if repeated and len(others) == 1:
        numbered = [_numbered(first, index) for index in range(1, len(subjects))]
        terms, others, repeated = [first, *numbered], numbered, False
    if len(subjects) < len(terms) - repeated or (len(subjects) > len(terms) and not repeated):
        return
    for index, subject in enumerate(subjects):
        for longer in match(first, subject, found):
            if others:
                left = [*subjects[:index], *subjects[index + 1 :]]
                yield from in_any_order(others, left, longer, match)
            else:
                yield longer


def _renamed(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """Return a part of a pattern with other parts in place of some names."""

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return names.get(name.id, name)

    renamed = Renamed().visit(copy.deepcopy(node))
    assert isinstance(renamed, ast.expr)
    return renamed


@functools.cache
def _numbered(node: ast.expr, number: int) -> ast.expr:
    """Return a part of a pattern whose holes are others, `B1` for `B`."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return _renamed(node, {name: ast.Name(f"{name}{number}") for name in names})


def texts_of(holes: Mapping[str, str]) -> dict[str, str]:
    """Return texts for a template: that of each hole, its negative, and it as an operand."""
    return {
        key: text
        for name, hole in holes.items()
        for key, text in (
            (name, hole),
            (f"-{name}", negated(hole)),
            (f"({name})", bracketed(hole)),
        )
    }
