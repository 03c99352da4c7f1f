"""Expressions for results as the pytrees that they were.

A pytree is built from public types, or has the structure of an argument, or one that is passed in.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax

from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import NONE, call, dict_, list_, subscript, tuple_
from jaxsight_source.values import spelling
from jaxsight_source.values.public_names import type_path

Opaque = Callable[[object, str], ast.expr]
"""Returns a name for the structure (a `PyTreeDef`) of a result that has no expression, given the
reason as text.
"""

Trees = Sequence[tuple[ast.expr, object]]
"""Parameters and their values, whose structure a result may share."""


class Leaf(int):
    """The position of a leaf among a program's results."""


def pytree(tree: object, leaves: Sequence[ast.expr], arguments: Trees, opaque: Opaque) -> ast.expr:
    """Return an expression for a pytree, given its structure (a `PyTreeDef`) and its leaves."""
    numbered = jax.tree.unflatten(tree, map(Leaf, range(len(leaves))))
    return built(numbered, leaves, arguments, opaque)


def built(
    structure: object, leaves: Sequence[ast.expr], arguments: Trees, opaque: Opaque
) -> ast.expr:
    """Return an expression for a result.

    `structure` is its pytree, whose leaves are positions (`Leaf`) in `leaves`.
    """

    def inner(part: object) -> ast.expr:
        return built(part, leaves, arguments, opaque)

    match structure:
        case Leaf():
            return leaves[structure]
        case None:
            return NONE
        case dict() if type(structure) is dict and (keys := spelled_keys(structure)) is not None:
            return dict_(zip(keys, map(inner, structure.values()), strict=True))
        case tuple() if type(structure) is tuple:
            return tuple_(map(inner, structure))
        case list() if type(structure) is list:
            return list_(map(inner, structure))
        case tuple() if _is_of_fields(structure) and (path := type_path(type(structure))):
            named = zip(_field_names(structure), map(inner, structure), strict=True)
            return call(path, *(ast.keyword(name, part) for name, part in named))
        case _:
            return _other(structure, leaves, arguments, opaque)


def spelled_keys(keys: Iterable[object]) -> list[ast.expr] | None:
    """Return the keys of a dictionary as expressions, or None if one has none.

    An `enum` that is defined in a function has none.
    """
    try:
        return [spelling.value(key) for key in keys]
    except Unwritable:
        return None


def _field_names(structure: object) -> tuple[str, ...]:
    return tuple(getattr(structure, "_fields", ()))


def _is_of_fields(structure: Any) -> bool:
    """Return whether a value is a named tuple whose children are its fields.

    Some named tuples are registered with other children.
    """
    if not hasattr(structure, "_fields"):
        return False
    registry: Any = jax.tree_util.default_registry
    one_level = registry.flatten_one_level(structure)
    children = list(one_level[0]) if one_level else []
    return len(children) == len(structure) and all(map(operator.is_, children, structure))


def _parts(expr: ast.expr, value: object, depth: int = 4) -> Iterator[tuple[ast.expr, object]]:
    """Yield an argument and its parts to a `depth`, each with the expression that reads it."""
    yield expr, value
    if depth == 0:
        return
    match value:
        case tuple() if hasattr(value, "_fields"):
            for name, part in zip(_field_names(value), value, strict=True):
                yield from _parts(ast.Attribute(expr, name), part, depth - 1)
        case tuple() | list():
            for index, part in enumerate(value):
                yield from _parts(subscript(expr, ast.Constant(index)), part, depth - 1)
        case dict():
            for key, part in value.items():
                if isinstance(key, str):
                    yield from _parts(subscript(expr, ast.Constant(key)), part, depth - 1)
        case _:
            return


def _other(
    structure: object, leaves: Sequence[ast.expr], arguments: Trees, opaque: Opaque
) -> ast.expr:
    numbers, tree = jax.tree.flatten(structure)
    leaf_list = list_(leaves[number] for number in numbers)
    for parameter, argument in arguments:
        for expr, value in _parts(parameter, argument):
            structure_of_value: object = jax.tree.structure(value)
            if structure_of_value == tree:
                return call("jax.tree.unflatten", call("jax.tree.structure", expr), leaf_list)
    cls = type(structure)
    name = f"{cls.__module__}.{cls.__qualname__}"
    why = f"is the `jax.tree.structure` of a result of type {name}, which has no public constructor"
    return call("jax.tree.unflatten", opaque(tree, why), leaf_list)
