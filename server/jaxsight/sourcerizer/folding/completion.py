"""Adds runs to families that lack some equations because nothing reads their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxsight.interpreters.compat.staging import (
    is_literal,
    new_variable,
)
from jaxsight.sourcerizer.folding.families import (
    Placed,
    run_read,
)
from jaxsight.sourcerizer.folding.steps import (
    NOTHING,
    Family,
    Missing,
    Place,
    Returned,
    flow_of,
    inputs_of,
    present,
)
from jaxsight.sourcerizer.folding.tokens import token_of


def complete(
    items: Sequence[Any],
    made: Sequence[Placed],
    segments: Iterable[tuple[int, int, str]],
    known: dict[Any, int],
) -> None:
    """Add runs to families that lack some equations because nothing reads their results."""
    taken = {place for _, places in made for place in places}
    left = [segment for segment in segments if segment[:2] not in taken]
    for family, places in made:
        for first, last, name in left:
            if name != family.name or (first, last) in taken:
                continue
            run = _completed(family, items[first:last], made, known)
            if run is not None:
                taken.add((first, last))
                places.append((first, last))
                family.runs.append(run)
                family.inputs = inputs_of(family.runs)


def _completed(
    family: Family, segment: Sequence[Any], made: Sequence[Placed], known: dict[Any, int]
) -> list[Any] | None:
    """Return equations as a run of a family with `Missing` ones, or None if they do not fit."""
    full, flow = family.runs[0], flow_of(family.runs[0])
    own = {id(var) for item in segment for var in item.outvars}
    held: dict[Place, int] = {}
    """The ids of the variables that correspond to results of the full run."""
    sums: dict[Place, int] = {}
    optional: set[int] = set()
    run: list[Any] = []
    for place, item in enumerate(full):
        at = len(present(run))
        other = segment[at] if at < len(segment) else None
        if other is not None and _corresponds(item, other, flow[place], held, own, known):
            run.append(other)
            held.update({(place, i): id(var) for i, var in enumerate(other.outvars)})
            optional |= {sums[source] for source in flow[place] if source in sums}
            continue
        run.append(Missing(list(item.invars), list(map(_like, item.outvars))))
        inside = [source for source in flow[place] if source is not None]
        if item.primitive.name == "add_any" and len(inside) == 1 and inside[0] in held:
            held[place, 0] = held[inside[0]]  # the sum has no other operand
            sums[place, 0] = place
    if len(present(run)) < len(segment) or 2 * len(segment) < len(full):
        return None
    partner = _partner_of(family, segment)
    for place, item in enumerate(run):
        if not isinstance(item, Missing):
            continue
        for slot, source in enumerate(flow[place]):
            if source is not None or is_literal(item.invars[slot]):
                continue
            value = NOTHING if place in optional else _value_of(family, run, place, slot, partner)
            if value is None:
                return None
            item.invars[slot] = value
    if partner is not None:
        family.partners.append(partner)
    elif family.inside is not None:
        return None
    family.optional |= optional
    return run


def _like(var: Any) -> Any:
    """Return a new variable of the same type that nothing reads."""
    return Returned("_") if isinstance(var, Returned) else new_variable(var.aval)


def _corresponds(
    item: Any,
    other: Any,
    flow: Sequence[Place | None],
    held: Mapping[Place, int],
    own: set[int],
    known: dict[Any, int],
) -> bool:
    """Return whether an item is the corresponding one of a full run, with the same operands."""
    if token_of(item, known) != token_of(other, known):
        return False
    return all(
        held.get(source) == id(atom) if source is not None else id(atom) not in own
        for source, atom in zip(flow, other.invars, strict=True)
    )


def _partner_of(family: Family, segment: Sequence[Any]) -> int | None:
    """Return the run of the containing helper that a run reads from, or None."""
    if family.inside is None:
        return None
    where = {
        id(var): number
        for number, run in enumerate(family.inside.runs)
        for item in run
        for var in item.outvars
    }
    read = {
        id(atom): where[id(atom)] for item in segment for atom in item.invars if id(atom) in where
    }
    number = run_read(family.inside, read)
    return None if number in family.partners else number


def _value_of(
    family: Family, run: Sequence[Any], place: int, slot: int, partner: int | None
) -> Any:
    """Return the value that a run would read at a place, by analogy with the other runs.

    Return None if it does not follow from them.
    """
    row = [other[place].invars[slot] for other in family.runs]
    if all(var is row[0] for var in row):
        return row[0]
    for there, item in enumerate(run):
        for index, atom in enumerate(item.invars if not isinstance(item, Missing) else ()):
            if all(
                other[there].invars[index] is var
                for other, var in zip(family.runs, row, strict=True)
            ):
                return atom
    if partner is None or family.inside is None:
        return None
    outer = family.inside
    for outer_row in outer.inputs:
        if all(outer_row[n] is var for n, var in zip(family.partners, row, strict=True)):
            return outer_row[partner]
    for there, item in enumerate(outer.runs[0]):
        for result in range(len(item.outvars)):
            if all(
                outer.variable(n, (there, result)) is var
                for n, var in zip(family.partners, row, strict=True)
            ):
                return outer.variable(partner, (there, result))
    return None
