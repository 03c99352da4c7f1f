"""Expressions for results as the pytrees that they were.

A pytree is built from public types, or has the structure of an argument, or one that is passed in.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import NONE, call, dict_, list_, modules_in, subscript, tuple_
from jaxsight_source.text.imports import SHORT
from jaxsight_source.text.layout import flat
from jaxsight_source.values import public_names, scalars, spelling

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
        case dict() if type(structure) is dict and (keys := _keys(structure)) is not None:
            return dict_(zip(keys, map(inner, structure.values()), strict=True))
        case tuple() if type(structure) is tuple:
            return tuple_(map(inner, structure))
        case list() if type(structure) is list:
            return list_(map(inner, structure))
        case tuple() if _is_of_fields(structure) and public_names.type_path(type(structure)):
            return _from_fields(
                structure, dict(zip(_field_names(structure), structure, strict=True)), inner
            )
        case _:
            return _other(structure, leaves, arguments, opaque)


def _keys(structure: dict[object, object]) -> list[ast.expr] | None:
    try:
        return [spelling.value(key) for key in structure]
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
                    yield from _parts(subscript(expr, scalars.text(key)), part, depth - 1)
        case _:
            return


def _from_fields(
    structure: object, fields: dict[str, object], inner: Callable[[object], ast.expr]
) -> ast.expr:
    path = public_names.type_path(type(structure))
    assert path is not None
    return call(path, *(ast.keyword(name, inner(part)) for name, part in fields.items()))


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
    constructed = _dataclass(structure, leaves, arguments, opaque)
    if constructed is not None:
        return constructed
    cls = type(structure)
    name = f"{cls.__module__}.{cls.__qualname__}"
    why = f"is the `jax.tree.structure` of a result of type {name}, which has no public constructor"
    return call("jax.tree.unflatten", opaque(tree, why), leaf_list)


def _dataclass(
    structure: object, leaves: Sequence[ast.expr], arguments: Trees, opaque: Opaque
) -> ast.expr | None:
    """Return a constructor call for a dataclass, if it results in the same structure, or None."""
    if not dataclasses.is_dataclass(structure) or isinstance(structure, type):
        return None
    if not public_names.type_path(type(structure)):
        return None
    fields = {
        field.name: getattr(structure, field.name, None)
        for field in dataclasses.fields(structure)
        if field.init
    }

    def build(numbers: Sequence[ast.expr], otherwise: Opaque) -> ast.expr:
        def inner(part: object) -> ast.expr:
            inside = jax.tree.leaves(part)
            if inside and all(type(leaf) is Leaf for leaf in inside):
                return built(part, numbers, arguments, otherwise)
            return spelling.value(part)

        return _from_fields(structure, fields, inner)

    def refuse(tree: object, why: str) -> ast.expr:
        raise Unwritable(tree, why)

    count = len(leaves)
    short = {name: sys.modules.get(module) for module, name in SHORT.items()}
    try:
        trial = build([ast.Constant(number) for number in range(count)], refuse)
        roots = {module.partition(".")[0] for module in modules_in(trial)} | {"jax"}
        # Constructors of other packages may raise anything for numbers in place of arrays.
        again = eval(flat(trial), short | {root: sys.modules[root] for root in roots})
    except Exception:  # noqa: BLE001
        return None
    there: object = jax.tree.structure(again)
    if there != jax.tree.structure(structure):
        return None
    if jax.tree.leaves(again) != jax.tree.leaves(structure):
        return None
    return build(leaves, opaque)
