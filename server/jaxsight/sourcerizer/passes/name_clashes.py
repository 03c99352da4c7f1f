"""Handles parameters that shadow an import of the written module.

The body then becomes a function of its own, with other parameter names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from jaxsight.sourcerizer.calls.signature import Argument, Call, Fixed
from jaxsight.sourcerizer.text.exprs import Atom, Expr, Slot, call, rebuilt
from jaxsight.sourcerizer.text.imports import IMPORTS
from jaxsight.sourcerizer.text.statements import Function, Return

SHADOWING = frozenset(IMPORTS) | {"complex", "frozenset", "range", "repr", "slice", "tuple", "type"}
"""Names that the body of a function may use, so that a parameter would shadow them."""

Read = TypeVar("Read", Argument, Fixed)


def bare(parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a parameter list."""
    names = (parameter.lstrip("*").partition("=")[0] for parameter in parameters)
    return tuple(name for name in names if name not in ("", "/"))


def renamed(inner: Call) -> tuple[Call, dict[str, str]]:
    """Return the call with new names for shadowing parameters, and these by the old names."""
    names = bare(inner.parameters)
    others: dict[str, str] = {}
    for name in names:
        if name in SHADOWING:
            others[name] = f"{name}_"
            while others[name] in names:
                others[name] += "_"
    if not others:
        return inner, {}

    def leaf(found: Atom | Slot) -> Expr:
        if isinstance(found, Atom) and found.text in others:
            return Atom(others[found.text])
        return found

    def read(found: Read) -> Read:
        return replace(found, expr=rebuilt(found.expr, leaf))

    return replace(
        inner,
        parameters=tuple(others.get(name, name) for name in names),
        arguments=tuple(map(read, inner.arguments)),
        fixed=tuple(map(read, inner.fixed)),
    ), others


def apart(whole: Function, name: str, others: dict[str, str]) -> Function:
    """Move the body of a function into a new function `name`, and return that."""
    given = bare(whole.parameters)
    inner = Function(name, tuple(others.get(each, each) for each in given), whole.body)
    whole.body = [Return(call(name, *map(Atom, given)))]
    return inner
