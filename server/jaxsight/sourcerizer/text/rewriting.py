"""Walks over the statements of a function, and rewrites them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Expr,
    is_identifier,
)
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Return,
    Statement,
    With,
)

UNREAD = Atom("_")


def value_name(expr: Any) -> str:
    """Return the name that an item is, or an empty string."""
    if isinstance(expr, Atom) and is_identifier(expr.text) and expr != UNREAD:
        return expr.text
    return ""


def own_statements(body: Sequence[Statement]) -> Iterator[Any]:
    """Yield the statements of a function, without those of inner functions."""
    for statement in body:
        yield statement
        if isinstance(statement, (With, For)):
            yield from own_statements(statement.body)


def expressions(body: Iterable[Statement]) -> Iterator[Expr]:
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value) | Return(value):
                yield value
            case For(_, values, inside):
                yield values
                yield from expressions(inside)
            case Function(_, _, inside) | With(_, inside):
                yield from expressions(inside)
            case _:
                pass


def rewritten(
    body: Sequence[Statement],
    changed: dict[int, Statement | None],
    expression: Callable[[Any], Any] | None,
) -> list[Statement]:
    """Return statements with replacements, by their ids, and with rewritten expressions."""
    statements: list[Statement] = []
    for old in body:
        statement = changed.get(id(old), old)
        match statement:
            case None:
                continue
            case Assign(_, value) | Effect(value) | Return(value) if expression is not None:
                statement = dataclasses.replace(statement, value=expression(value))
            case For(_, values, inside):
                values = expression(values) if expression is not None else values
                inside = rewritten(inside, changed, expression)
                statement = dataclasses.replace(statement, values=values, body=inside)
            case Function(_, _, inside) | With(_, inside):
                inside = rewritten(inside, changed, expression)
                statement = dataclasses.replace(statement, body=inside)
            case _:
                pass
        statements.append(statement)
    return statements
