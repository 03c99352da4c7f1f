"""Writes what is read in the same way from each element of a list as a comprehension.

An example is `[{"w": g[0]} for g in reversed(gradients)]`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jaxsight_source.text.exprs import call, changed, generators, is_atom, mapped, parsed, tuple_
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import Path, iterated, numbered, path_of, walk

_Each: TypeAlias = tuple[ast.expr, list[ast.comprehension]]
"""The body of a comprehension, and what it is over."""


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
        both_names = tuple_(map(ast.Name, ("i", _ELEMENT)))
        counted = generators(both_names, call("enumerate", over.iter))
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
