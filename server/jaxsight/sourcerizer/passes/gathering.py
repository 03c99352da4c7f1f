"""Comprehensions for results that are read in the same way from each element of a list.

An example is `[{"w": g[0]} for g in reversed(gradients)]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight.sourcerizer.text.exprs import (
    Atom,
    Call,
    Each,
    Expr,
    Keyword,
    Pair,
    Sequence_,
    Star,
    call,
)
from jaxsight.sourcerizer.text.paths import Path, Walk, iterated, numbered, path_of, walk

FEWEST = 3
"""The minimum number of elements of a comprehension."""

_ELEMENT = "g"


def gathered(expr: Any, sizes: Mapping[tuple[Any, ...], int]) -> Any:
    """Return an expression with comprehensions for collections whose elements differ in one index.

    Args:
        sizes: the lengths of the lists that are read, by the root of a path and its steps.
    """
    match expr:
        case Sequence_("{", items) if all(isinstance(item, Pair) for item in items):
            return Sequence_("{", _pairs(items, sizes))  # type: ignore[arg-type]
        case Sequence_("[" | "(" as bracket, items):
            made = _each(items, sizes)
            if made is not None:
                each, _ = made
                return Sequence_("[", (each,)) if bracket == "[" else call("tuple", each)
            for inside in (slice(1, None), slice(None, -1)):
                if (made := _each(items[inside], sizes)) is not None:
                    each, _ = made
                    rest = [gathered(item, sizes) for item in items]
                    rest[inside] = [Star(Sequence_("[", (each,)))]
                    return Sequence_(bracket, tuple(rest))
            return Sequence_(bracket, tuple(gathered(item, sizes) for item in items))
        case Call(function, items):
            return Call(function, tuple(gathered(item, sizes) for item in items))
        case Keyword(name, value):
            return Keyword(name, gathered(value, sizes))
        case _:
            return expr


def _pairs(items: Sequence[Pair], sizes: Mapping[tuple[Any, ...], int]) -> tuple[Any, ...]:
    """Return a dictionary's pairs, with `**{…}` for those with numbered keys (`"Block_0"`)."""
    groups: dict[str, list[Pair]] = {}
    for item in items:
        text = item.key.text if isinstance(item.key, Atom) else ""
        groups.setdefault(text.rstrip("\"'0123456789"), []).append(item)
    done: list[Any] = []
    for before, group in groups.items():
        group.sort(key=lambda item: (len(item.key.text), item.key.text) if before else ())  # type: ignore[union-attr]
        made = _each([item.value for item in group], sizes) if before else None
        keys = numbered([item.key.text for item in group]) if made is not None else None  # type: ignore[union-attr]
        if made is None or keys is None or keys[1].start or keys[1].step != 1:
            done.extend(Pair(item.key, gathered(item.value, sizes)) for item in group)
            continue
        each, values = made
        key = Atom(f'f"{keys[0]}{{i}}"')
        pair = Each(Pair(key, each.body), f"i, {_ELEMENT}", call("enumerate", values))  # type: ignore[arg-type]
        inside = Sequence_("{", (pair,))
        if len(groups) == 1:
            return (pair,)
        done.append(Star(Star(inside)))
    return tuple(done)


def _each(items: Sequence[Any], sizes: Mapping[tuple[Any, ...], int]) -> tuple[Each, Expr] | None:
    if len(items) < FEWEST:
        return None
    found = _Found()
    try:
        body = _shared(items, found)
    except _Differs:
        return None
    if found.base is None:
        return None
    values = iterated(found.base.expr, found.keys, sizes.get((found.base.root, *found.base.steps)))
    return None if values is None else (Each(body, _ELEMENT, values), values)


class _Differs(Exception):
    """Elements differ in more than an index."""


@dataclass(slots=True)
class _Found:
    base: Path | None = None
    keys: tuple[str, ...] = field(default_factory=tuple)


def _shared(items: Sequence[Any], found: _Found) -> Any:
    """Return the expression that all items have in common, in terms of `g`; raise `_Differs`."""
    first = items[0]
    if isinstance(first, (Pair, Keyword)):
        label = first.key if isinstance(first, Pair) else first.name
        if any(
            type(item) is not type(first)
            or (item.key if isinstance(item, Pair) else item.name) != label
            for item in items
        ):
            raise _Differs
        value = _shared([item.value for item in items], found)
        return Pair(first.key, value) if isinstance(first, Pair) else Keyword(first.name, value)
    if all(item == first for item in items):
        return first
    if isinstance(first, (Sequence_, Call)):
        parts = [item.items for item in items if type(item) is type(first)]
        heads = [item.bracket if isinstance(item, Sequence_) else getattr(item, "function", None)
                 for item in items]  # fmt: skip
        if len(parts) != len(items) or any(head != heads[0] for head in heads):
            raise _Differs
        if len(set(map(len, parts))) != 1:
            raise _Differs
        inside = tuple(_shared(column, found) for column in zip(*parts, strict=True))
        if isinstance(first, Sequence_):
            return Sequence_(first.bracket, inside)
        return Call(first.function, inside)
    way: Walk | None = walk([path_of(item) for item in items])
    if way is None:
        raise _Differs
    if found.base is None:
        found.base, found.keys = way.base, way.keys
    if (found.base, found.keys) != (way.base, way.keys):
        raise _Differs
    return Path(_ELEMENT, way.rest).expr
