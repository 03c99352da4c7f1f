"""Walks over the statements of a module: the names that they read and assign, and rewrites."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxsight_source.text.exprs import (
    Atom,
    Choice,
    Each,
    Expr,
    Lambda,
    Sequence_,
    Slot,
    Star,
    is_identifier,
    modules_in,
    parts_of,
    rebuilt,
)
from jaxsight_source.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Raw,
    Return,
    Statement,
    With,
)

UNREAD = Atom("_")


def contents(statement: Statement) -> tuple[Sequence[Expr], Sequence[Statement]]:
    """Return the expressions of a statement, and the statements inside it."""
    match statement:
        case Effect(value, target=target) if target is not None:
            return (value, target), ()
        case Assign(_, value) | Effect(value) | Return(value):
            return (value,), ()
        case With(head, inside) | For(_, head, inside):
            return (head,), inside
        case Function(_, _, inside, decorators):
            return decorators, inside
        case _:
            return (), ()


def own_statements(body: Iterable[Statement], *, inner: bool = False) -> Iterator[Any]:
    """Yield the statements of a function, those of `inner` functions only on request."""
    for statement in body:
        yield statement
        if inner or not isinstance(statement, Function):
            yield from own_statements(contents(statement)[1], inner=inner)


def expressions(body: Iterable[Statement]) -> Iterator[Expr]:
    """Yield all expressions, also those of inner functions."""
    for statement in own_statements(body, inner=True):
        yield from contents(statement)[0]


def value_name(expr: object) -> str:
    """Return the name that an item is, or an empty string."""
    if isinstance(expr, Atom) and is_identifier(expr.text) and expr != UNREAD:
        return expr.text
    return ""


def names_read(body: Sequence[Statement]) -> Iterator[str]:
    """Yield every name that is read, once per reading."""
    for statement in own_statements(body, inner=True):
        for expr in contents(statement)[0]:
            yield from _read(expr)
        match statement:
            case Function(_, parameters):
                for parameter in parameters:
                    yield from _words(parameter.partition("=")[2])
            case Raw(lines):
                for line in lines:
                    yield from _words(line)
            case _:
                pass


@functools.lru_cache(maxsize=4096)  # the atoms of a large text
def _words(text: str) -> tuple[str, ...]:
    """Return the root names in a text: `jnp` for `jnp.ones`."""
    if is_identifier(text):
        return (text,)
    return tuple(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def _read(expr: object) -> list[str]:
    """Return the names that an expression reads, once per reading."""
    names: list[str] = []
    _gather(expr, names)
    return names


def _gather(expr: Any, names: list[str]) -> None:
    kind = type(expr)
    if kind is Atom:
        names.extend(_words(expr.text))
    elif kind is Choice:
        for part in (expr.single, expr.absent, expr.total):
            _gather(part, names)
            _gather(part, names)  # twice, as below
    elif kind is Lambda or kind is Each:
        inside = _read(expr.body)
        names.extend(inside)
        names.extend(inside)  # twice: values evaluated later, or repeatedly, must not be inlined
        if kind is Each:
            _gather(expr.values, names)
    else:
        for part in parts_of(expr):
            _gather(part, names)


def modules_read(body: Sequence[Statement]) -> set[str]:
    """Return the modules to import for the names that statements read."""
    raw = [part for part in own_statements(body, inner=True) if isinstance(part, Raw)]
    return {module for part in raw for module in part.modules}.union(
        *map(modules_in, expressions(body))
    )


def names_assigned(body: Sequence[Statement]) -> Iterator[str]:
    """Yield every name that is assigned, once per assignment."""
    for statement in own_statements(body, inner=True):
        match statement:
            case Assign(targets) | For(targets):
                yield from _targets(targets)
            case Function(name, parameters):
                yield name
                for parameter in parameters:
                    yield from _words(parameter.lstrip("*").partition("=")[0])
            case With(context):
                yield from _read(context)  # `as name` is part of it
            case Raw(lines):
                for line in lines:
                    yield from _words(line)
            case _:
                pass


def _targets(targets: str | Expr | Star) -> Iterator[str]:
    match targets:
        case str(text) | Atom(text):
            yield from _words(text)
        case Star(inside):
            yield from _targets(inside)
        case Sequence_(_, items):
            for item in items:
                yield from _targets(item)  # type: ignore[arg-type]
        case _:
            pass


def rewritten(
    body: Iterable[Statement],
    expression: Callable[[Any], Any] = lambda expr: expr,
    name: Callable[[str], str] = str,
    changed: Mapping[int, Statement | None] | None = None,
) -> list[Statement]:
    """Return statements with other expressions.

    Args:
        expression: returns what takes the place of an expression.
        name: returns what takes the place of a name that is assigned or defined.
        changed: what takes the place of whole statements, by their ids; None removes one.
    """
    changed = changed or {}
    statements: list[Statement] = []
    for old in body:
        statement = changed.get(id(old), old)
        match statement:
            case None:
                continue
            case Assign(targets, value):
                targets = name(targets) if isinstance(targets, str) else targets
                statement = replace(statement, targets=targets, value=expression(value))
            case Effect(value, target=target) if target is not None:
                statement = replace(statement, value=expression(value), target=expression(target))
            case Effect(value) | Return(value):
                statement = replace(statement, value=expression(value))
            case With(context, inside):
                inside = rewritten(inside, expression, name, changed)
                statement = With(expression(context), inside)
            case For(target, values, inside):
                inside = rewritten(inside, expression, name, changed)
                statement = For(target, expression(values), inside)
            case Function(own, _, inside, decorators):
                inside = rewritten(inside, expression, name, changed)
                decorators = list(map(expression, decorators))
                statement = replace(statement, name=name(own), body=inside, decorators=decorators)
            case _:
                pass
        statements.append(statement)
    return statements


def replaced(
    body: Iterable[Statement],
    leaf: Callable[[Atom | Slot], Expr],
    name: Callable[[str], str] = str,
) -> list[Statement]:
    """Return statements with each atom replaced by the result of `leaf`, and names by `name`."""
    return rewritten(body, lambda expr: rebuilt(expr, leaf), name)


def renamed(body: Iterable[Statement], old: str, new: str) -> list[Statement]:
    """Return the statements with `old` replaced in all names.

    It is also replaced at the start of a name (`old_jvp`, `old.defjvp`).
    """

    def text(defined: str) -> str:
        return new + defined[len(old) :] if defined.startswith(old) else defined

    def leaf(part: Atom | Slot) -> Expr:
        return Atom(text(part.text), part.module) if isinstance(part, Atom) else part

    return replaced(body, leaf, text)
