"""The names that a function gives to dimensions of its parameters: `B, L, D = x.shape`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.source.definitions import Function
from jaxsight.text.names import bound_in_scope


@dataclass(frozen=True, slots=True)
class NamedDimension:
    """A dimension of a parameter, which may count from the end, and its name."""

    parameter: str
    index: int
    name: str


def named_dimensions(tree: ast.Module, function: Function) -> tuple[NamedDimension, ...]:
    """Return the dimensions that the first level of a function's body names, in text order.

    A parameter that was bound again before is not the argument any more.
    """
    definition = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == function.qualname.rpartition(".")[2]
            and node.lineno - 1 <= function.name_range.start.line
            and node.body[0].lineno - 1 >= function.name_range.start.line
        ),
        None,
    )
    if definition is None:
        return ()
    parameters = {parameter.name for parameter in function.parameters}
    found: list[NamedDimension] = []
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            found += _of_assignment(statement.targets[0], statement.value, parameters)
        # After `x = x.T`, `x.shape` is no longer that of the argument.
        parameters.difference_update(bound_in_scope(statement))
    names = [dimension.name for dimension in found]
    return tuple(
        dimension
        for dimension in found
        if names.count(dimension.name) == 1 and not dimension.name.startswith("_")
    )


def _of_assignment(
    target: ast.expr, value: ast.expr, parameters: set[str]
) -> Iterator[NamedDimension]:
    match target, value:
        case ast.Name(id=name), _:
            if (dimension := _dimension(value)) is not None and dimension[0] in parameters:
                yield NamedDimension(*dimension, name)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, size in zip(targets, values, strict=True):
                if isinstance(one, ast.Name):
                    yield from _of_assignment(one, size, parameters)
        case ast.Tuple(elts=targets) | ast.List(elts=targets), _:
            parameter, start = _shape(value)
            if parameter in parameters:
                for index, name in _indices(targets, start):
                    yield NamedDimension(parameter, index, name)


def _indices(targets: Sequence[ast.expr], start: int) -> Iterator[tuple[int, str]]:
    """Yield the index of each name in an unpacked shape; after `*rest`, from the end."""
    starred = [at for at, target in enumerate(targets) if isinstance(target, ast.Starred)]
    # Two stars are an error; with `x.shape[-2:]`, what is after a star has no fixed index.
    if len(starred) > 1 or (starred and start < 0):
        return
    for at, target in enumerate(targets):
        if isinstance(target, ast.Name):
            after_star = bool(starred) and at > starred[0]
            yield (at - len(targets) if after_star else at + start), target.id


def _shape(value: ast.expr) -> tuple[str, int]:
    """Return the parameter whose shape an expression is, and at which dimension it begins."""
    match value:
        case ast.Attribute(value=ast.Name(id=name), attr="shape"):
            return name, 0
        case ast.Call(func=ast.Attribute(attr="shape"), args=[ast.Name(id=name)], keywords=[]):
            return name, 0
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
            slice=ast.Slice(lower=lower, step=None),
        ):
            start = 0 if lower is None else _integer(lower)
            return (name, start) if start is not None else ("", 0)
    return "", 0


def _dimension(value: ast.expr) -> tuple[str, int] | None:
    match value:
        case ast.Subscript(value=shape, slice=index):
            parameter, _ = _shape(shape)
            number = _integer(index)
            whole = isinstance(shape, ast.Attribute | ast.Call)
            return (parameter, number) if parameter and number is not None and whole else None
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name, 0
    return None


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        return None
    # Not `isinstance`: `True` is an instance of `int`, too.
    return value if type(value) is int else None
