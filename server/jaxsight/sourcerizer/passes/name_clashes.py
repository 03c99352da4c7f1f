"""Handles parameters that shadow an import of the written module.

The body then becomes a function of its own, with other parameter names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from jaxsight.sourcerizer.calls.signature import BoundCall, Fixed, TracedArgument
from jaxsight.sourcerizer.text.exprs import Atom, Expr, Slot, call, rebuilt
from jaxsight.sourcerizer.text.imports import IMPORTS
from jaxsight.sourcerizer.text.statements import Function, Return

SHADOWING = frozenset(IMPORTS) | {"complex", "frozenset", "range", "repr", "slice", "tuple", "type"}
"""Names that the body of a function may use, so that a parameter would shadow them."""

Read = TypeVar("Read", TracedArgument, Fixed)


def bare(parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a parameter list."""
    names = (parameter.lstrip("*").partition("=")[0] for parameter in parameters)
    return tuple(name for name in names if name not in ("", "/"))


def renamed(inner: BoundCall) -> tuple[BoundCall, dict[str, str]]:
    """Return the call with new names for shadowing parameters, and these by the old names."""
    names = bare(inner.parameters)
    new_names: dict[str, str] = {}
    for name in names:
        if name in SHADOWING:
            new_names[name] = f"{name}_"
            while new_names[name] in names:
                new_names[name] += "_"
    if not new_names:
        return inner, {}

    def leaf(part: Atom | Slot) -> Expr:
        if isinstance(part, Atom) and part.text in new_names:
            return Atom(new_names[part.text])
        return part

    def read(part: Read) -> Read:
        return replace(part, expr=rebuilt(part.expr, leaf))

    return replace(
        inner,
        parameters=tuple(new_names.get(name, name) for name in names),
        arguments=tuple(map(read, inner.arguments)),
        fixed=tuple(map(read, inner.fixed)),
    ), new_names


def apart(function: Function, name: str, new_names: dict[str, str]) -> Function:
    """Move the body of a function into a new function `name`, and return that."""
    parameters = bare(function.parameters)
    inner = Function(
        name, tuple(new_names.get(parameter, parameter) for parameter in parameters), function.body
    )
    function.body = [Return(call(name, *map(Atom, parameters)))]
    return inner
