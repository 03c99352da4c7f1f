"""Writes similar values as comprehensions: `[g(x) for x in rest]`.

Works on the statements of one function. The computations and their order stay the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Call,
    Each,
    Expr,
    Lambda,
    Sequence_,
    Star,
    call,
    parts_of,
    tuple_,
    with_parts,
)
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.text.statements import Assign, Effect, For, Return, Statement, With, lines
from jaxsight.sourcerizer.text.walks import value_name

FEWEST_STATEMENTS = 3
"""The minimum number of consecutive statements in a comprehension."""

FEWEST_ITEMS = 4
"""The minimum number of consecutive items in a comprehension."""

_SHORTER = 0.75
"""The maximum length of a comprehension, relative to the items that it replaces."""

_MOST_VARYING = 2
"""The maximum number of names in which the expressions of a comprehension differ."""


def alike(body: Sequence[Statement], indent: str, used: set[str]) -> list[Statement]:
    """Return the statements of a function, with comprehensions for consecutive similar ones."""
    inside = [_with_alike_items(_alike_within(statement, indent, used), used) for statement in body]
    written: list[Statement] = []
    position = 0
    while position < len(inside):
        stop = position + 1
        while stop < len(inside) and _continues(inside[position:stop], inside[stop]):
            stop += 1
        comprehension = _one(inside[position:stop], indent, used)  # type: ignore[arg-type]
        written.extend([comprehension] if comprehension is not None else inside[position:stop])
        position = stop
    return written


def _alike_within(statement: Statement, indent: str, used: set[str]) -> Statement:
    if isinstance(statement, (With, For)):
        inside = alike(statement.body, f"{indent}    ", used)
        return dataclasses.replace(statement, body=inside)
    return statement


def _continues(before: Sequence[Statement], statement: Statement) -> bool:
    """Return whether a statement is similar to those before it, and independent of them."""
    first = before[0]
    if not (_is_computed(first) and _is_computed(statement)):
        return False
    assigned = {previous.targets for previous in before if isinstance(previous, Assign)}
    first_value, value = first.value, statement.value  # type: ignore[union-attr]
    return _shape(first_value) == _shape(value) and not assigned & set(_leaves(value))


def _is_computed(statement: Statement) -> bool:
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets, str)
        and not isinstance(statement.value, Atom)
        and bool(statement.equations)
        and not statement.comment
    )


def _one(run: Sequence[Assign], indent: str, used: set[str]) -> Assign | None:
    """Return a comprehension for similar statements, or None if that is not shorter."""
    if len(run) < FEWEST_STATEMENTS:
        return None
    comprehension = _each([statement.value for statement in run], used)
    if comprehension is None:
        return None
    targets = tuple_(Atom(str(statement.targets)) for statement in run)
    equations = [equation for statement in run for equation in statement.equations]
    assignment = Assign(targets, Sequence_("[", (comprehension,)), equations)
    return assignment if _height([assignment], indent) < _height(run, indent) else None


def _height(statements: Sequence[Statement], indent: str) -> int:
    return sum(1 for _ in lines(statements, indent))


def _with_alike_items(statement: Statement, used: set[str]) -> Statement:
    if isinstance(statement, (Assign, Effect, Return)):
        return dataclasses.replace(statement, value=_gathered(statement.value, used))
    return statement


def _gathered(expr: object, used: set[str]) -> Any:
    """Return an expression with comprehensions for similar items."""
    rebuilt = with_parts(expr, tuple(_gathered(part, used) for part in parts_of(expr)))
    if not isinstance(rebuilt, Sequence_) or rebuilt.bracket == "{":
        return rebuilt
    elements: list[Any] = []
    position = 0
    while position < len(rebuilt.items):
        stop = position + 1
        first = rebuilt.items[position]
        while stop < len(rebuilt.items) and isinstance(first, Call) and (
            _shape(first) == _shape(rebuilt.items[stop])
        ):  # fmt: skip
            stop += 1
        run = rebuilt.items[position:stop]
        comprehension = _each(run, used) if len(run) >= FEWEST_ITEMS else None
        if comprehension is not None and len(flat(comprehension)) < _SHORTER * len(
            flat(tuple_(run))
        ):
            elements.append(Star(Sequence_("[", (comprehension,))))
        else:
            elements.extend(run)
        position = stop
    if len(elements) == 1 and len(rebuilt.items) > 1:
        return (
            elements[0].value
            if rebuilt.bracket == "["
            else call("tuple", elements[0].value.items[0])
        )
    return Sequence_(rebuilt.bracket, tuple(elements))


def _each(exprs: Sequence[object], used: set[str]) -> Each | None:
    """Return `f(x) for x in values` for expressions that differ in one name or two, or None."""
    columns = list(zip(*map(_leaves, exprs), strict=True))
    varying = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    if not 1 <= len(varying) <= _MOST_VARYING:
        return None
    names = [name for name in ("x", "y", "each", "other") if name not in used][: len(varying)]
    if len(names) < len(varying):
        return None
    called = dict(zip(varying, names, strict=True))
    leaves = iter([called.get(column, column[0]) for column in columns])
    values = [tuple_(map(Atom, column)) for column in varying]
    target = ", ".join(names)
    over: Expr = values[0] if len(values) == 1 else call("zip", *values)
    return Each(_with_leaves(exprs[0], leaves), target, over)


def _shape(expr: object) -> Any:
    """Return a key for an expression without the names of values in it."""
    if isinstance(expr, Atom):
        return None if value_name(expr) else expr.text
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return (Call, expr.function.text, *map(_shape, expr.items))
    if isinstance(expr, (Lambda, Each)):
        return id(expr)
    label = [getattr(expr, name, "") for name in ("name", "operator", "bracket", "target")]
    return (type(expr), *label, *map(_shape, parts_of(expr)))


def _leaves(expr: object) -> Iterator[str]:
    """Yield the names of values in an expression, in order."""
    if isinstance(expr, Atom):
        if name := value_name(expr):
            yield name
    elif isinstance(expr, Call) and isinstance(expr.function, Atom):
        for argument in expr.items:
            yield from _leaves(argument)
    else:
        for part in parts_of(expr):
            yield from _leaves(part)


def _with_leaves(expr: object, leaves: Iterator[str]) -> Any:
    if isinstance(expr, Atom):
        return Atom(next(leaves)) if value_name(expr) else expr
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return Call(
            expr.function, tuple([_with_leaves(argument, leaves) for argument in expr.items])
        )
    return with_parts(expr, tuple([_with_leaves(part, leaves) for part in parts_of(expr)]))
