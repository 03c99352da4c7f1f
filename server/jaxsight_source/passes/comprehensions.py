"""Writes similar values as comprehensions: `[g(x) for x in rest]`.

Works on the statements of one function (`alike`), or on an expression whose parts are read in the
same way from each element of a list (`gathered`): `[{"w": g[0]} for g in reversed(gradients)]`. The
computations and their order stay the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard, TypeVar

from jaxsight_source.text.exprs import call, changed, generators, is_atom, mapped, parsed, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.paths import Path, iterated, numbered, path_of, walk
from jaxsight_source.text.statements import assign, equations_of, height
from jaxsight_source.text.walks import value_name

_T = TypeVar("_T")

FEWEST_STATEMENTS = 3
"""The minimum number of consecutive statements in a comprehension.

A choice, as are the next ones: fewer or longer are read more easily one by one.
"""

FEWEST_ITEMS = 4
"""The minimum number of consecutive items in a comprehension."""

_SHORTER = 0.75
"""The maximum length of a comprehension, relative to the items that it replaces."""

_MOST_VARYING = 2
"""The maximum number of names in which the expressions of a comprehension differ."""


def alike(body: Sequence[ast.stmt], indent: str, used: set[str]) -> list[ast.stmt]:
    """Return the statements of a function, with comprehensions for consecutive similar ones."""
    inside = [_alike_within(statement, indent, used) for statement in body]
    written: list[ast.stmt] = []
    for run in _runs(inside, _continues):
        comprehension = _one(run, indent, used)
        written.extend([comprehension] if comprehension is not None else run)
    return written


def _runs(items: Sequence[_T], continues: Callable[[list[_T], _T], bool]) -> Iterator[list[_T]]:
    """Yield consecutive items together, as long as the next one continues those before it."""
    run: list[_T] = []
    for item in items:
        if run and not continues(run, item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _alike_within(statement: ast.stmt, indent: str, used: set[str]) -> ast.stmt:
    """Return a statement with comprehensions inside it: for statements, and for items."""
    match statement:
        case ast.With(body=body) | ast.For(body=body):
            return changed(statement, body=alike(body, f"{indent}    ", used))
        case ast.Assign(value=value) | ast.Expr(value) | ast.Return(ast.expr() as value):
            return changed(statement, value=_gathered(value, used))
        case _:
            return statement


def _continues(before: Sequence[ast.stmt], statement: ast.stmt) -> bool:
    """Return whether a statement is similar to those before it, and independent of them."""
    first = before[0]
    if not (_is_computed(first) and _is_computed(statement)):
        return False
    assigned = {flat(each.targets[0]) for each in before if isinstance(each, ast.Assign)}
    is_same = _shape(first.value) == _shape(statement.value)
    return is_same and not assigned & set(_leaves(statement.value))


def _is_computed(statement: ast.stmt) -> TypeGuard[ast.Assign]:
    match statement:
        case ast.Assign([ast.Name()], value):
            is_commented = getattr(statement, "comment", "")
            return not is_atom(value) and bool(equations_of(statement)) and not is_commented
        case _:
            return False


def _one(run: Sequence[Any], indent: str, used: set[str]) -> ast.Assign | None:
    """Return a comprehension for similar statements, or None if that is not shorter."""
    if len(run) < FEWEST_STATEMENTS:
        return None
    each = _each([statement.value for statement in run], used)
    if each is None:
        return None
    targets = tuple_(statement.targets[0] for statement in run)
    equations = [equation for statement in run for equation in equations_of(statement)]
    assignment = assign(targets, ast.ListComp(*each), equations)
    return assignment if height([assignment], indent) < height(run, indent) else None


def _gathered(expr: Any, used: set[str]) -> Any:
    """Return an expression with comprehensions for similar items."""
    if is_atom(expr) or isinstance(expr, ast.Lambda | ast.IfExp):
        return expr
    expr = mapped(expr, lambda part: _gathered(part, used))
    if not isinstance(expr, ast.Tuple | ast.List):
        return expr

    def similar(run: list[ast.expr], part: ast.expr) -> bool:
        return isinstance(run[0], ast.Call) and _shape(run[0]) == _shape(part)

    elements: list[ast.expr] = []
    for run in _runs(expr.elts, similar):
        each = _each(run, used) if len(run) >= FEWEST_ITEMS else None
        comprehension = ast.ListComp(*each) if each is not None else None
        longest = _SHORTER * len(flat(tuple_(run)))
        if comprehension is not None and len(flat(comprehension)) - 2 < longest:
            elements.append(ast.Starred(comprehension))
        else:
            elements.extend(run)
    match elements:
        case [ast.Starred(ast.ListComp(body, over) as only)] if len(expr.elts) > 1:
            is_list = isinstance(expr, ast.List)
            return only if is_list else call("tuple", ast.GeneratorExp(body, over))
        case _:
            return changed(expr, elts=elements)


_Each: TypeAlias = tuple[ast.expr, list[ast.comprehension]]
"""The body of a comprehension, and what it is over."""


def _each(exprs: Sequence[ast.expr], used: set[str]) -> _Each | None:
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
    values = [tuple_(map(ast.Name, column)) for column in varying]
    over = values[0] if len(values) == 1 else call("zip", *values)
    return _renamed(exprs[0], lambda _: next(leaves)), generators(_target(names), over)


def _target(names: Sequence[str]) -> ast.expr:
    return ast.Name(names[0]) if len(names) == 1 else tuple_(map(ast.Name, names))


_LATER = (ast.Lambda, ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.DictComp)


def _shape(expr: ast.expr) -> object:
    """Return a key for an expression without the names of values in it."""
    later = (id(part) for part in ast.walk(expr) if isinstance(part, _LATER))
    return flat(_renamed(expr, lambda _: "")), *later


def _leaves(expr: ast.expr) -> list[str]:
    """Return the names of values in an expression, in order."""
    names: list[str] = []

    def note(name: str) -> str:
        names.append(name)
        return name

    _renamed(expr, note)
    return names


def _renamed(expr: Any, rename: Callable[[str], str]) -> Any:
    """Return an expression with other names of values; those of functions that it calls stay."""
    if name := value_name(expr):
        return ast.Name(rename(name))
    if is_atom(expr) or isinstance(expr, _LATER):
        return expr
    function = expr.func if isinstance(expr, ast.Call) and value_name(expr.func) else None
    return mapped(expr, lambda part: part if part is function else _renamed(part, rename))


FEWEST_ELEMENTS = 3
"""The minimum number of elements of a comprehension, chosen: two are as short written out."""

_ELEMENT = "g"


Sizes: TypeAlias = Mapping[tuple[object, ...], int]
"""The lengths of the lists that are read, by the root of a path and its steps."""


def gathered(expr: Any, sizes: Sizes) -> Any:
    """Return an expression with comprehensions for elements that differ in one index."""
    match expr:
        case ast.Dict():
            return _pairs(expr, sizes)
        case ast.Tuple(elements) | ast.List(elements):
            if (each := _of_elements(elements, sizes)) is not None:
                if isinstance(expr, ast.List):
                    return ast.ListComp(*each)
                return call("tuple", ast.GeneratorExp(*each))
            for inside in (slice(1, None), slice(None, -1)):
                if (each := _of_elements(elements[inside], sizes)) is not None:
                    parts = [gathered(element, sizes) for element in elements]
                    parts[inside] = [ast.Starred(ast.ListComp(*each))]
                    return changed(expr, elts=parts)
            return mapped(expr, lambda part: gathered(part, sizes))
        case ast.Call() | ast.keyword():
            return mapped(expr, lambda part: gathered(part, sizes))
        case _:
            return expr


def _pairs(expr: ast.Dict, sizes: Sizes) -> ast.expr:
    """Return a dictionary, with `**{…}` for pairs with numbered keys (`"Block_0"`)."""
    groups: dict[str, list[tuple[str, ast.expr | None, ast.expr]]] = {}
    for key, value in zip(expr.keys, expr.values, strict=True):
        text = flat(key) if key is not None and is_atom(key) else ""
        groups.setdefault(text.rstrip("\"'0123456789"), []).append((text, key, value))
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    for before, group in groups.items():
        group.sort(key=lambda pair: (len(pair[0]), pair[0]) if before else ())
        each = _of_elements([value for _, _, value in group], sizes) if before else None
        keys = numbered([text for text, _, _ in group]) if each is not None else None
        if each is None or keys is None or keys[1].start or keys[1].step != 1:
            pairs += [(key, gathered(value, sizes)) for _, key, value in group]
            continue
        body, [over] = each
        counted = generators(_target(["i", _ELEMENT]), call("enumerate", over.iter))
        both = ast.DictComp(parsed(f'f"{keys[0]}{{i}}"'), body, counted)
        if len(groups) == 1:
            return both
        pairs.append((None, both))
    return ast.Dict([key for key, _ in pairs], [value for _, value in pairs])


def _of_elements(elements: Sequence[ast.expr], sizes: Sizes) -> _Each | None:
    if len(elements) < FEWEST_ELEMENTS:
        return None
    shared = _Found()
    try:
        body = _shared(elements, shared)
    except _Differs:
        return None
    if (base := shared.base) is None:
        return None
    values = iterated(base.expr, shared.keys, sizes.get((base.root, *base.steps)))
    return None if values is None else (body, generators(ast.Name(_ELEMENT), values))


class _Differs(Exception):
    """Elements differ in more than an index."""


@dataclass(slots=True)
class _Found:
    base: Path | None = None
    keys: tuple[str, ...] = ()


def _shared(elements: Sequence[Any], shared: _Found) -> Any:
    """Return the expression that all items have in common, in terms of `g`; raise `_Differs`."""

    def same(parts: Sequence[object]) -> None:
        if len(set(parts)) > 1:
            raise _Differs

    def columns(field: str) -> list[Any]:
        rows = [getattr(element, field) for element in elements]
        same(list(map(len, rows)))
        return [_shared(column, shared) for column in zip(*rows, strict=True)]

    first = elements[0]
    if len(set(map(flat, elements))) == 1:
        return first
    same(list(map(type, elements)))
    match first:
        case ast.keyword():
            same([element.arg for element in elements])
            return changed(first, value=_shared([element.value for element in elements], shared))
        case ast.Dict():
            same([tuple(flat(key) for key in element.keys) for element in elements])
            return changed(first, values=columns("values"))
        case ast.Tuple() | ast.List() | ast.Set():
            return changed(first, elts=columns("elts"))
        case ast.Call():
            same([flat(element.func) for element in elements])
            return changed(first, args=columns("args"), keywords=columns("keywords"))
        case _:
            pass
    way = walk(list(map(path_of, elements)))
    if way is None:
        raise _Differs
    if shared.base is None:
        shared.base, shared.keys = way.base, way.keys
    same([(shared.base, shared.keys), (way.base, way.keys)])
    return Path(_ELEMENT, way.after).expr
