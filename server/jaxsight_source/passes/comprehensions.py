"""Writes similar values as comprehensions: `[g(x) for x in rest]`.

Works on the statements of one function (`alike`), or on an expression whose parts are read in the
same way from each element of a list (`gathered`): `[{"w": g[0]} for g in reversed(gradients)]`. The
computations and their order stay the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight_source.text.exprs import (
    Atom,
    Call,
    Choice,
    Each,
    Expr,
    Keyword,
    Lambda,
    Pair,
    Sequence_,
    Star,
    call,
    parts_of,
    tuple_,
    with_parts,
)
from jaxsight_source.text.layout import flat
from jaxsight_source.text.paths import Path, Walk, iterated, numbered, path_of, walk
from jaxsight_source.text.statements import Assign, Effect, For, Return, Statement, With, height
from jaxsight_source.text.walks import value_name

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


def alike(body: Sequence[Statement], indent: str, used: set[str]) -> list[Statement]:
    """Return the statements of a function, with comprehensions for consecutive similar ones."""
    inside = [_alike_within(statement, indent, used) for statement in body]
    written: list[Statement] = []
    position = 0
    while position < len(inside):
        stop = position + 1
        while stop < len(inside) and _continues(inside[position:stop], inside[stop]):
            stop += 1
        comprehension = _one(inside[position:stop], indent, used)  # type: ignore[arg-type]
        written.extend([comprehension] if comprehension is not None else inside[position:stop])
        position = stop
    return written


def _alike_within(statement: Statement, indent: str, used: set[str]) -> Statement:
    """Return a statement with comprehensions inside it: for statements, and for items."""
    match statement:
        case With(body=body) | For(body=body):
            return dataclasses.replace(statement, body=alike(body, f"{indent}    ", used))
        case Assign(value=value) | Effect(value) | Return(value):
            return dataclasses.replace(statement, value=_gathered(value, used))
        case _:
            return statement


def _continues(before: Sequence[Statement], statement: Statement) -> bool:
    """Return whether a statement is similar to those before it, and independent of them."""
    first = before[0]
    if not (_is_computed(first) and _is_computed(statement)):
        return False
    assigned = {previous.targets for previous in before if isinstance(previous, Assign)}
    first_value, value = first.value, statement.value  # type: ignore[union-attr]
    return _shape(first_value) == _shape(value) and not assigned & set(_leaves(value))


def _is_computed(statement: Statement) -> bool:
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets, str)
        and not isinstance(statement.value, Atom)
        and bool(statement.equations)
        and not statement.comment
    )


def _one(run: Sequence[Assign], indent: str, used: set[str]) -> Assign | None:
    """Return a comprehension for similar statements, or None if that is not shorter."""
    if len(run) < FEWEST_STATEMENTS:
        return None
    comprehension = _each([statement.value for statement in run], used)
    if comprehension is None:
        return None
    targets = tuple_(Atom(str(statement.targets)) for statement in run)
    equations = [equation for statement in run for equation in statement.equations]
    assignment = Assign(targets, Sequence_("[", (comprehension,)), equations)
    return assignment if height([assignment], indent) < height(run, indent) else None


def _gathered(expr: object, used: set[str]) -> Any:
    """Return an expression with comprehensions for similar items."""
    rebuilt = with_parts(expr, tuple(_gathered(part, used) for part in parts_of(expr)))
    if not isinstance(rebuilt, Sequence_) or rebuilt.bracket == "{":
        return rebuilt
    elements: list[Any] = []
    position = 0
    while position < len(rebuilt.items):
        stop = position + 1
        first = rebuilt.items[position]
        while stop < len(rebuilt.items) and isinstance(first, Call) and (
            _shape(first) == _shape(rebuilt.items[stop])
        ):  # fmt: skip
            stop += 1
        run = rebuilt.items[position:stop]
        comprehension = _each(run, used) if len(run) >= FEWEST_ITEMS else None
        if comprehension is not None and len(flat(comprehension)) < _SHORTER * len(
            flat(tuple_(run))
        ):
            elements.append(Star(Sequence_("[", (comprehension,))))
        else:
            elements.extend(run)
        position = stop
    if len(elements) == 1 and len(rebuilt.items) > 1:
        return (
            elements[0].value
            if rebuilt.bracket == "["
            else call("tuple", elements[0].value.items[0])
        )
    return Sequence_(rebuilt.bracket, tuple(elements))


def _each(exprs: Sequence[object], used: set[str]) -> Each | None:
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
    values = [tuple_(map(Atom, column)) for column in varying]
    target = ", ".join(names)
    over: Expr = values[0] if len(values) == 1 else call("zip", *values)
    return Each(_with_leaves(exprs[0], leaves), target, over)


def _shape(expr: object) -> Any:
    """Return a key for an expression without the names of values in it."""
    if isinstance(expr, Atom):
        return None if value_name(expr) else expr.text
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return (Call, expr.function.text, *map(_shape, expr.items))
    if isinstance(expr, (Choice, Lambda, Each)):
        return id(expr)
    label = [getattr(expr, name, "") for name in ("name", "operator", "bracket", "target")]
    return (type(expr), *label, *map(_shape, parts_of(expr)))


def _leaves(expr: object) -> Iterator[str]:
    """Yield the names of values in an expression, in order."""
    if isinstance(expr, Atom):
        if name := value_name(expr):
            yield name
    elif isinstance(expr, Call) and isinstance(expr.function, Atom):
        for argument in expr.items:
            yield from _leaves(argument)
    else:
        for part in parts_of(expr):
            yield from _leaves(part)


def _with_leaves(expr: object, leaves: Iterator[str]) -> Any:
    if isinstance(expr, Atom):
        return Atom(next(leaves)) if value_name(expr) else expr
    if isinstance(expr, Call) and isinstance(expr.function, Atom):
        return Call(
            expr.function, tuple([_with_leaves(argument, leaves) for argument in expr.items])
        )
    return with_parts(expr, tuple([_with_leaves(part, leaves) for part in parts_of(expr)]))


FEWEST_ELEMENTS = 3
"""The minimum number of elements of a comprehension, chosen: two are as short written out."""

_ELEMENT = "g"


def gathered(expr: object, sizes: Mapping[tuple[object, ...], int]) -> Any:
    """Return an expression with comprehensions for collections whose elements differ in one index.

    Args:
        sizes: the lengths of the lists that are read, by the root of a path and its steps.
    """
    match expr:
        case Sequence_("{", elements) if all(isinstance(element, Pair) for element in elements):
            return Sequence_("{", _pairs(elements, sizes))  # type: ignore[arg-type]
        case Sequence_("[" | "(" as bracket, elements):
            both = _of_elements(elements, sizes)
            if both is not None:
                comprehension, _ = both
                return (
                    Sequence_("[", (comprehension,))
                    if bracket == "["
                    else call("tuple", comprehension)
                )
            for inside in (slice(1, None), slice(None, -1)):
                if (both := _of_elements(elements[inside], sizes)) is not None:
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


def _pairs(elements: Sequence[Pair], sizes: Mapping[tuple[object, ...], int]) -> tuple[object, ...]:
    """Return a dictionary's pairs, with `**{…}` for those with numbered keys (`"Block_0"`)."""
    groups: dict[str, list[Pair]] = {}
    for element in elements:
        text = element.key.text if isinstance(element.key, Atom) else ""
        groups.setdefault(text.rstrip("\"'0123456789"), []).append(element)
    done: list[object] = []
    for before, group in groups.items():
        group.sort(key=lambda element: (len(element.key.text), element.key.text) if before else ())  # type: ignore[union-attr]
        both = _of_elements([element.value for element in group], sizes) if before else None
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


def _of_elements(
    elements: Sequence[object], sizes: Mapping[tuple[object, ...], int]
) -> tuple[Each, Expr] | None:
    if len(elements) < FEWEST_ELEMENTS:
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
        heads = [
            element.bracket
            if isinstance(element, Sequence_)
            else getattr(element, "function", None)
            for element in elements
        ]
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
