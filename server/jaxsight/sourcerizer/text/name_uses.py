"""The names that the statements of a module read and assign."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Each,
    Lambda,
    Sequence_,
    Star,
    is_identifier,
    modules_in,
    parts_of,
)
from jaxsight.sourcerizer.text.statements import (
    Assign,
    Effect,
    For,
    Function,
    Raw,
    Remark,
    Return,
    Statement,
    With,
)


def names_read(body: Sequence[Statement]) -> Iterator[str]:
    """Yield every name that is read, once per reading."""
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value) | Return(value):
                yield from _read(value)
            case Function(_, parameters, inside, decorators):
                for parameter in parameters:
                    yield from _words(parameter.partition("=")[2])
                for decorator in decorators:
                    yield from _read(decorator)
                yield from names_read(inside)
            case With(context, inside):
                yield from _read(context)
                yield from names_read(inside)
            case For(_, values, inside):
                yield from _read(values)
                yield from names_read(inside)
            case Raw(lines):
                for line in lines:
                    yield from _words(line)
            case Remark():
                pass


@functools.lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the root names in a text: `jnp` for `jnp.ones`."""
    if is_identifier(text):
        return (text,)
    return tuple(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def _read(expr: Any) -> list[str]:
    """Return the names that an expression reads, once per reading."""
    names: list[str] = []
    _gather(expr, names)
    return names


def _gather(expr: Any, names: list[str]) -> None:
    kind = type(expr)
    if kind is Atom:
        names.extend(_words(expr.text))
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
    modules: set[str] = set()
    for statement in body:
        match statement:
            case Assign(_, value) | Effect(value) | Return(value):
                modules |= modules_in(value)
            case Function(_, _, inside, decorators):
                modules |= modules_read(inside).union(*map(modules_in, decorators))
            case With(head, inside) | For(_, head, inside):
                modules |= modules_in(head) | modules_read(inside)
            case Raw(modules=named):
                modules |= named
            case Remark():
                pass
    return modules


def names_assigned(body: Sequence[Statement]) -> Iterator[str]:
    """Yield every name that is assigned, once per assignment."""
    for statement in body:
        match statement:
            case Assign(targets):
                yield from _targets(targets)
            case Function(name, parameters, inside):
                yield name
                for parameter in parameters:
                    yield from _words(parameter.lstrip("*").partition("=")[0])
                yield from names_assigned(inside)
            case For(target, _, inside):
                yield from _targets(target)
                yield from names_assigned(inside)
            case With(context, inside):
                yield from _read(context)  # `as name` is part of it
                yield from names_assigned(inside)
            case Raw(lines):
                for line in lines:
                    yield from _words(line)
            case _:
                pass


def _targets(targets: str | Sequence_) -> Iterator[str]:
    if isinstance(targets, str):
        yield from _words(targets)
        return
    for target in targets.items:
        inside = target.value if isinstance(target, Star) else target
        if isinstance(inside, Sequence_):
            yield from _targets(inside)
        elif isinstance(inside, Atom):
            yield from _words(inside.text)
