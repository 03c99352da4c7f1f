"""Adds runs to families that lack some equations because nothing reads their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxsight.interpreters.compat.staging import is_literal, new_variable
from jaxsight.sourcerizer.folding.families import Placed, run_read
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
from jaxsight.sourcerizer.folding.tokens import EquationNumbers


def complete(
    equations: Sequence[object],
    families: Sequence[Placed],
    segments: Iterable[tuple[int, int, str]],
    numbers: EquationNumbers,
) -> None:
    """Add runs to families that lack some equations because nothing reads their results."""
    used = {position for _, places in families for position in places}
    unplaced = [segment for segment in segments if segment[:2] not in used]
    for family, places in families:
        for first, last, name in unplaced:
            if name != family.name or (first, last) in used:
                continue
            run = _completed(family, equations[first:last], numbers)
            if run is not None:
                used.add((first, last))
                places.append((first, last))
                family.runs.append(run)
                family.inputs = inputs_of(family.runs)


def _completed(
    family: Family, segment: Sequence[Any], numbers: EquationNumbers
) -> list[object] | None:
    """Return equations as a run of a family with `Missing` ones, or None if they do not fit."""
    full, flow = family.runs[0], flow_of(family.runs[0])
    own = {id(var) for equation in segment for var in equation.outvars}
    variables: dict[Place, int] = {}
    """The ids of the variables that correspond to results of the full run."""
    sums: dict[Place, int] = {}
    optional: set[int] = set()
    run: list[Any] = []
    for position, equation in enumerate(full):
        at = len(present(run))
        candidate = segment[at] if at < len(segment) else None
        if candidate is not None and _corresponds(
            equation, candidate, flow[position], variables, own, numbers
        ):
            run.append(candidate)
            variables.update({(position, i): id(var) for i, var in enumerate(candidate.outvars)})
            optional |= {sums[source] for source in flow[position] if source in sums}
            continue
        run.append(Missing(list(equation.invars), list(map(_like, equation.outvars))))
        inside = [source for source in flow[position] if source is not None]
        if equation.primitive.name == "add_any" and len(inside) == 1 and inside[0] in variables:
            variables[position, 0] = variables[inside[0]]  # the sum has no other operand
            sums[position, 0] = position
    if len(present(run)) < len(segment) or 2 * len(segment) < len(full):
        return None
    partner = _partner_of(family, segment)
    for position, equation in enumerate(run):
        if not isinstance(equation, Missing):
            continue
        for slot, source in enumerate(flow[position]):
            if source is not None or is_literal(equation.invars[slot]):
                continue
            value = (
                NOTHING if position in optional else _value_of(family, run, position, slot, partner)
            )
            if value is None:
                return None
            equation.invars[slot] = value
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
    equation: Any,
    candidate: Any,
    flow: Sequence[Place | None],
    variables: Mapping[Place, int],
    own: set[int],
    numbers: EquationNumbers,
) -> bool:
    """Return whether an item is the corresponding one of a full run, with the same operands."""
    if numbers.of(equation) != numbers.of(candidate):
        return False
    return all(
        variables.get(source) == id(atom) if source is not None else id(atom) not in own
        for source, atom in zip(flow, candidate.invars, strict=True)
    )


def _partner_of(family: Family, segment: Sequence[Any]) -> int | None:
    """Return the run of the containing helper that a run reads from, or None."""
    if family.inside is None:
        return None
    where = {
        id(var): number
        for number, run in enumerate(family.inside.runs)
        for equation in run
        for var in equation.outvars
    }
    read = {
        id(atom): where[id(atom)]
        for equation in segment
        for atom in equation.invars
        if id(atom) in where
    }
    number = run_read(family.inside, read)
    return None if number in family.partners else number


def _value_of(
    family: Family, run: Sequence[Any], position: int, slot: int, partner: int | None
) -> Any:
    """Return the value that a run would read at a place, by analogy with the other runs.

    Return None if it does not follow from them.
    """
    row = [peer[position].invars[slot] for peer in family.runs]
    if all(var is row[0] for var in row):
        return row[0]
    for there, equation in enumerate(run):
        for index, atom in enumerate(equation.invars if not isinstance(equation, Missing) else ()):
            if all(
                peer[there].invars[index] is var for peer, var in zip(family.runs, row, strict=True)
            ):
                return atom
    if partner is None or family.inside is None:
        return None
    outer = family.inside
    for outer_row in outer.inputs:
        if all(outer_row[n] is var for n, var in zip(family.partners, row, strict=True)):
            return outer_row[partner]
    for there, equation in enumerate(outer.runs[0]):
        for output in range(len(equation.outvars)):
            if all(
                outer.variable(n, (there, output)) is var
                for n, var in zip(family.partners, row, strict=True)
            ):
                return outer.variable(partner, (there, output))
    return None
