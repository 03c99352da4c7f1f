"""Walks over the statements of a module: the names that they read and assign, and rewrites."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxsight_source.text.exprs import changed, children, mapped, modules_in
from jaxsight_source.text.statements import Raw

UNREAD = "_"


def contents(statement: ast.stmt) -> tuple[Sequence[ast.expr], list[ast.stmt]]:
    """Return the expressions that a statement reads, and the statements inside it."""
    match statement:
        case ast.Assign(targets, value):
            return [value, *(part for part in targets if isinstance(part, ast.Subscript))], []
        case ast.Expr(value) | ast.Return(ast.expr() as value) | ast.Raise(ast.expr() as value):
            return [value], []
        case ast.With([ast.withitem(context)], body):
            return [context], body
        case ast.For(_, values, body):
            return [values], body
        case ast.FunctionDef(_, parameters, body, decorators):
            return [*decorators, *parameters.defaults, *filter(None, parameters.kw_defaults)], body
        case ast.If(test, body, others):
            return [test], [*body, *others]
        case _:
            return [], []


def own_statements(body: Iterable[ast.stmt], *, inner: bool = False) -> Iterator[ast.stmt]:
    """Yield the statements of a function, those of `inner` functions only on request."""
    for statement in body:
        yield statement
        if inner or not isinstance(statement, ast.FunctionDef):
            yield from own_statements(contents(statement)[1], inner=inner)


def expressions(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """Yield all expressions, also those of inner functions."""
    for statement in own_statements(body, inner=True):
        yield from contents(statement)[0]


def value_name(expr: object) -> str:
    """Return the name that an item is, or an empty string."""
    return expr.id if isinstance(expr, ast.Name) and expr.id != UNREAD else ""


def names_read(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield every name that is read, once per reading."""
    for statement in own_statements(body, inner=True):
        names = _words(statement) if isinstance(statement, Raw) else []
        for expr in contents(statement)[0]:
            _gather(expr, names)
        yield from names


def _words(raw: Raw) -> list[str]:
    return re.findall(r"(?<![\w.])[A-Za-z_]\w*", "\n".join(raw.lines))


def _gather(expr: Any, names: list[str]) -> None:
    """Append the names that an expression reads, once per reading."""
    match expr:
        case ast.Name(name):
            names.append(name)
        case ast.Constant():
            pass
        case ast.comprehension(_, values):
            _gather(values, names)
        case _:
            for part in children(expr):
                _gather(part, names)
                if isinstance(expr, _LATER) and not isinstance(part, ast.comprehension):
                    _gather(part, names)  # twice: values evaluated later must not be inlined


_LATER = (ast.IfExp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
"""Expressions whose parts are evaluated later, or repeatedly."""


def modules_read(body: Iterable[ast.stmt]) -> set[str]:
    """Return the modules to import for the names that statements read."""
    raw = (part for part in own_statements(body, inner=True) if isinstance(part, Raw))
    return set().union(*(part.modules for part in raw), *map(modules_in, body))


def names_assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield every name that is assigned, once per assignment."""
    for statement in own_statements(body, inner=True):
        match statement:
            case ast.Assign([target]) | ast.For(target):
                yield from _targets(target)
            case ast.FunctionDef(name, parameters):
                yield name
                yield from (node.arg for node in ast.walk(parameters) if isinstance(node, ast.arg))
            case ast.With([ast.withitem(_, ast.Name(name))]):
                yield name
            case Raw():
                yield from _words(statement)
            case _:
                pass


def _targets(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(name):
            yield name
        case ast.Starred(inside):
            yield from _targets(inside)
        case ast.Tuple(parts):
            for part in parts:
                yield from _targets(part)
        case _:
            pass


def rewritten(
    body: Iterable[ast.stmt],
    expression: Callable[[Any], Any] = lambda expr: expr,
    replaced: Mapping[int, ast.stmt | None] | None = None,
) -> list[ast.stmt]:
    """Return statements with other expressions.

    Args:
        expression: returns what takes the place of an expression.
        replaced: what takes the place of whole statements, by their ids; None removes one.
    """
    replaced = replaced or {}

    def change(part: Any) -> Any:
        if isinstance(part, ast.stmt):
            return part  # rewritten already
        return expression(part) if isinstance(part, ast.expr) else mapped(part, change)

    statements: list[ast.stmt] = []
    for old in body:
        statement = replaced.get(id(old), old)
        if isinstance(statement, ast.With | ast.For | ast.FunctionDef):
            inside = rewritten(statement.body, expression, replaced)
            statement = changed(statement, body=inside)
        if statement is not None:
            statements.append(mapped(statement, change))
    return statements


def renamed(body: Iterable[ast.stmt], old: str, new: str) -> list[ast.stmt]:
    """Return the statements with `old` replaced in all names.

    It is also replaced at the start of a name (`old_jvp`).
    """

    def change(part: Any) -> Any:
        part = mapped(part, change)
        for field in ("id", "name"):
            name = vars(part).get(field)
            if name is not None and name.startswith(old):
                return changed(part, **{field: new + name[len(old) :]})
        return part

    return list(map(change, body))
