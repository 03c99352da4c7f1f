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
        case Sequence_("{", elements) if all(isinstance(element, Pair) for element in elements):
            return Sequence_("{", _pairs(elements, sizes))  # type: ignore[arg-type]
        case Sequence_("[" | "(" as bracket, elements):
            both = _each(elements, sizes)
            if both is not None:
                comprehension, _ = both
                return (
                    Sequence_("[", (comprehension,))
                    if bracket == "["
                    else call("tuple", comprehension)
                )
            for inside in (slice(1, None), slice(None, -1)):
                if (both := _each(elements[inside], sizes)) is not None:
                    comprehension, _ = both
                    parts = [gathered(element, sizes) for element in elements]
                    parts[inside] = [Star(Sequence_("[", (comprehension,)))]
                    return Sequence_(bracket, tuple(parts))
            return Sequence_(bracket, tuple(gathered(element, sizes) for element in elements))
        case Call(function, elements):
            return Call(function, tuple(gathered(element, sizes) for element in elements))
        case Keyword(name, value):
            return Keyword(name, gathered(value, sizes))
        case _:
            return expr


def _pairs(elements: Sequence[Pair], sizes: Mapping[tuple[Any, ...], int]) -> tuple[Any, ...]:
    """Return a dictionary's pairs, with `**{…}` for those with numbered keys (`"Block_0"`)."""
    groups: dict[str, list[Pair]] = {}
    for element in elements:
        text = element.key.text if isinstance(element.key, Atom) else ""
        groups.setdefault(text.rstrip("\"'0123456789"), []).append(element)
    done: list[Any] = []
    for before, group in groups.items():
        group.sort(key=lambda element: (len(element.key.text), element.key.text) if before else ())  # type: ignore[union-attr]
        both = _each([element.value for element in group], sizes) if before else None
        keys = numbered([element.key.text for element in group]) if both is not None else None  # type: ignore[union-attr]
        if both is None or keys is None or keys[1].start or keys[1].step != 1:
            done.extend(Pair(element.key, gathered(element.value, sizes)) for element in group)
            continue
        comprehension, values = both
        key = Atom(f'f"{keys[0]}{{i}}"')
        pair = Each(Pair(key, comprehension.body), f"i, {_ELEMENT}", call("enumerate", values))  # type: ignore[arg-type]
        inside = Sequence_("{", (pair,))
        if len(groups) == 1:
            return (pair,)
        done.append(Star(Star(inside)))
    return tuple(done)


def _each(
    elements: Sequence[Any], sizes: Mapping[tuple[Any, ...], int]
) -> tuple[Each, Expr] | None:
    if len(elements) < FEWEST:
        return None
    shared = _Found()
    try:
        body = _shared(elements, shared)
    except _Differs:
        return None
    if shared.base is None:
        return None
    values = iterated(
        shared.base.expr, shared.keys, sizes.get((shared.base.root, *shared.base.steps))
    )
    return None if values is None else (Each(body, _ELEMENT, values), values)


class _Differs(Exception):
    """Elements differ in more than an index."""


@dataclass(slots=True)
class _Found:
    base: Path | None = None
    keys: tuple[str, ...] = field(default_factory=tuple)


def _head(expr: Any) -> Any:
    return expr.bracket if isinstance(expr, Sequence_) else getattr(expr, "function", None)


def _shared(elements: Sequence[Any], shared: _Found) -> Any:
    """Return the expression that all items have in common, in terms of `g`; raise `_Differs`."""
    first = elements[0]
    if isinstance(first, (Pair, Keyword)):
        label = first.key if isinstance(first, Pair) else first.name
        if any(
            type(element) is not type(first)
            or (element.key if isinstance(element, Pair) else element.name) != label
            for element in elements
        ):
            raise _Differs
        value = _shared([element.value for element in elements], shared)
        return Pair(first.key, value) if isinstance(first, Pair) else Keyword(first.name, value)
    if all(element == first for element in elements):
        return first
    if isinstance(first, (Sequence_, Call)):
        parts = [element.items for element in elements if type(element) is type(first)]
        heads = list(map(_head, elements))
        if len(parts) != len(elements) or any(head != heads[0] for head in heads):
            raise _Differs
        if len(set(map(len, parts))) != 1:
            raise _Differs
        inside = tuple(_shared(column, shared) for column in zip(*parts, strict=True))
        if isinstance(first, Sequence_):
            return Sequence_(first.bracket, inside)
        return Call(first.function, inside)
    way: Walk | None = walk([path_of(element) for element in elements])
    if way is None:
        raise _Differs
    if shared.base is None:
        shared.base, shared.keys = way.base, way.keys
    if (shared.base, shared.keys) != (way.base, way.keys):
        raise _Differs
    return Path(_ELEMENT, way.after).expr
