"""Families of equal runs: which values they read and return, and which is written in which.

Runs that lack sums, because there is nothing to add, are added to complete ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxsight_source.compat.staging import new_variable
from jaxsight_source.folding import steps

Placed = tuple[steps.Family, list[tuple[int, int]]]
"""A family, and the start and stop positions of its runs."""


def families_of(
    equations: Sequence[steps.Item], places: Sequence[tuple[int, int]], name: str
) -> Iterator[tuple[steps.Family, list[tuple[int, int]]]]:
    """Yield families of equal-looking runs that also have the same flow of values inside."""
    by_flow: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for first, last in places:
        by_flow[steps.flow_of(equations[first:last])].append((first, last))
    for own in by_flow.values():
        if len(own) > 1:
            runs = [list(equations[first:last]) for first, last in own]
            yield steps.Family(name, runs, steps.inputs_of(runs)), own


_LEAST_READ = 2
"""The minimum number of values that a helper must read of another to be written inside it: a single
one is as short as an argument."""


def nest(families: Sequence[steps.Family]) -> None:
    """Put families inside those whose values they read, run by run."""
    sources: dict[int, tuple[steps.Family, int, steps.Place]] = {}
    for family in families:
        for key, (number, place) in steps.sources_of(family.runs).items():
            sources[key] = family, number, place
    for family in families:
        for partner in families:
            if partner is family or partner.inside is not None or family.returned:
                continue
            partners = _partners(family, partner, sources)
            if partners is not None:
                family.inside, family.partners = partner, partners
                partner.returned.append(family)
                break


def _partners(
    family: steps.Family,
    partner: steps.Family,
    source_of: Mapping[int, tuple[steps.Family, int, steps.Place]],
) -> list[int] | None:
    """Return, for each run of a family, the run of `partner` that it reads from.

    Return None if the family cannot be written inside `partner`.
    """
    places: list[set[steps.Place]] = []
    partners: list[int] = []
    for number in range(len(family.runs)):
        sources = {
            id(row[number]): source
            for row in family.inputs
            if (source := source_of.get(id(row[number]))) is not None and source[0] is partner
        }
        own = run_read(partner, {key: source[1] for key, source in sources.items()})
        if own is None:
            return None
        partners.append(own)
        places.append({source[2] for source in sources.values() if source[1] == own})
    if len(set(partners)) < len(partners) or any(read != places[0] for read in places):
        return None
    return partners if len(places[0]) >= _LEAST_READ else None


def run_read(family: steps.Family, read: Mapping[int, int]) -> int | None:
    """Return the run of a family that computes or reads all of some values, or None.

    `read` maps the ids of the values to their runs.
    """
    for number in set(read.values()):
        inputs = {id(row[number]) for row in family.inputs}
        if all(run == number or key in inputs for key, run in read.items()):
            return number
    return None


def divided_by_outputs(
    equations: Sequence[steps.Item], families: Sequence[Placed], outputs: Sequence[object]
) -> list[Placed]:
    """Return the families split by which values are read outside; empty if none needs a split."""
    readers = steps.readers_of(equations, outputs)
    where = _whereabouts([family for family, _ in families])
    divided: list[Placed] = []
    for family, places in families:
        by_outputs: dict[Hashable, list[int]] = defaultdict(list)
        for number in range(len(family.runs)):
            inner, results = _outputs_of(family, [number], readers, where)
            by_outputs[frozenset((*inner, *results))].append(number)
        if family.inside is not None or len(by_outputs) == 1:
            divided.append((family, places))
            continue
        for numbers in by_outputs.values():
            if len(numbers) > 1:
                runs = [family.runs[number] for number in numbers]
                own = steps.Family(
                    family.name, runs, steps.inputs_of(runs), optional=family.optional
                )
                divided.append((own, [places[number] for number in numbers]))
    return divided if len(divided) != len(families) or any(
        new is not old for (new, _), (old, _) in zip(divided, families, strict=True)
    ) else []  # fmt: skip


def _whereabouts(families: Iterable[steps.Family]) -> dict[int, tuple[steps.Family, int]]:
    """Return the family and run of each item, by the item's id."""
    return {
        id(equation): (family, number)
        for family in families
        for number, run in enumerate(family.runs)
        for equation in run
    }


Places = tuple[steps.Place, ...]
"""Positions of steps in a run, each with the position of a result."""


def _outputs_of(
    family: steps.Family,
    numbers: Iterable[int],
    readers: Mapping[int, Sequence[object]],
    where: Mapping[int, tuple[steps.Family, int]],
) -> tuple[Places, Places]:
    """Return the values of some runs that are read outside, in two groups.

    The first group is read by other steps; the second is only returned by the program.
    """
    inner: list[steps.Place] = []
    results: list[steps.Place] = []
    chosen = list(numbers)
    for position, equation in enumerate(family.runs[0]):
        for output in range(len(equation.outvars)):
            outside: list[object] = []
            for number in chosen:
                for reader in readers.get(id(family.runs[number][position].outvars[output]), ()):
                    at = where.get(id(reader)) if reader is not None else None
                    if at is None or not _is_within(at, family, number):
                        outside.append(reader)
            if any(reader is not None for reader in outside):
                inner.append((position, output))
            elif outside:
                results.append((position, output))
    return tuple(inner), tuple(results)


def _is_within(at: tuple[steps.Family, int], family: steps.Family, number: int) -> bool:
    """Return whether an item is part of a run, or of a run nested inside it."""
    owner, run = at
    if owner is family:
        return run == number
    return owner.inside is family and owner.partners[run] == number


def replaced(
    equations: Sequence[steps.Item], families: Sequence[Placed], outputs: Sequence[object]
) -> list[steps.Item]:
    """Return the equations with a step in place of each run."""
    starts = {own[0]: (family, number, own[1]) for family, places in families
              for number, own in enumerate(places)}  # fmt: skip
    readers = steps.readers_of(equations, outputs)
    where = _whereabouts(family for family, _ in families)
    for family, _ in families:
        inner, results = _outputs_of(family, range(len(family.runs)), readers, where)
        family.outputs = [*inner, *results]
        family.handed_on = len(inner)
        for which, nested in enumerate(family.returned):
            for number in nested.partners:
                family.handles[which, number] = steps.Returned(nested.name)
    done: list[steps.Item] = []
    position = 0
    while position < len(equations):
        if position not in starts:
            done.append(equations[position])
            position += 1
            continue
        family, number, position = starts[position]
        done.append(_step(family, number))
    return done


def _step(family: steps.Family, number: int) -> steps.FoldedStep:
    run = family.runs[number]
    captured = set(captures(family))
    invars = [row[number] for index, row in enumerate(family.inputs) if index not in captured]
    outvars = [family.variable(number, position) for position in family.outputs]
    for which in range(len(family.returned)):
        handle = family.handles.get((which, number))
        outvars.append(handle if handle is not None else steps.Returned("_"))
    if family.inside is not None:
        which = family.inside.returned.index(family)
        invars.insert(0, family.inside.handles[which, family.partners[number]])
    members = [inner for equation in run for inner in steps.members_of(equation)]
    effects = frozenset(effect for equation in run for effect in equation.effects)
    source = steps.present(run)[0].source_info
    step = steps.FoldedStep(steps.CALL, family, number, invars, outvars, members, effects, source)
    if family.inside is not None:
        results = len(family.outputs) - family.handed_on
        step.bases = ("ct",) * family.handed_on + ("grad",) * results
    return step


def captures(family: steps.Family) -> dict[int, Any]:
    """Return the variables of the containing helper's first run that inputs of a family stand for.

    The keys are the inputs' positions.
    """
    outer = family.inside
    if outer is None:
        return {}
    sources = steps.sources_of(outer.runs)
    captured: dict[int, object] = {}
    for index, row in enumerate(family.inputs):
        source = sources.get(id(row[0]))
        if source is not None and source[0] == family.partners[0]:
            captured[index] = outer.variable(0, source[1])
            continue
        for outer_row in outer.inputs:
            if all(
                outer_row[partner] is var for partner, var in zip(family.partners, row, strict=True)
            ):
                captured[index] = outer_row[0]
                break
    return captured


def complete(
    equations: Sequence[steps.Item],
    families: Sequence[Placed],
    segments: Iterable[tuple[int, int, str]],
    numbers: steps.EquationNumbers,
) -> None:
    """Add runs to families that lack sums, because there is nothing to add."""
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
                family.inputs = steps.inputs_of(family.runs)


def _completed(
    family: steps.Family, segment: Sequence[steps.Item], numbers: steps.EquationNumbers
) -> list[steps.Item] | None:
    """Return equations as a run of a family with `Missing` sums, or None if they do not fit."""
    full, flow = family.runs[0], steps.flow_of(family.runs[0])
    own = {id(var) for equation in segment for var in equation.outvars}
    variables: dict[steps.Place, int] = {}
    """The ids of the variables that correspond to results of the full run."""
    optional: set[int] = set()
    run: list[steps.Item] = []
    for position, equation in enumerate(full):
        at = len(steps.present(run))
        candidate = segment[at] if at < len(segment) else None
        if candidate is not None and _corresponds(
            equation, candidate, flow[position], variables, own, numbers
        ):
            run.append(candidate)
            variables.update({(position, i): id(var) for i, var in enumerate(candidate.outvars)})
            continue
        inside = [source for source in flow[position] if source is not None]
        if equation.primitive.name != "add_any" or len(inside) != 1 or inside[0] not in variables:
            return None
        variables[position, 0] = variables[inside[0]]  # the sum has no other operand
        optional.add(position)
        operands = [
            steps.NOTHING if source is None else atom
            for source, atom in zip(flow[position], equation.invars, strict=True)
        ]
        run.append(steps.Missing(operands, [new_variable(equation.outvars[0].aval)]))
    if len(steps.present(run)) < len(segment):
        return None
    partner = _partner_of(family, segment)
    if partner is not None:
        family.partners.append(partner)
    elif family.inside is not None:
        return None
    family.optional |= optional
    return run


def _corresponds(
    equation: steps.Item,
    candidate: steps.Item,
    flow: Sequence[steps.Place | None],
    variables: Mapping[steps.Place, int],
    own: set[int],
    numbers: steps.EquationNumbers,
) -> bool:
    """Return whether an item is the corresponding one of a full run, with the same operands."""
    if numbers.of(equation) != numbers.of(candidate):
        return False
    return all(
        variables.get(source) == id(atom) if source is not None else id(atom) not in own
        for source, atom in zip(flow, candidate.invars, strict=True)
    )


def _partner_of(family: steps.Family, segment: Sequence[steps.Item]) -> int | None:
    """Return the run of the containing helper that a run reads from, or None."""
    if family.inside is None:
        return None
    where = steps.sources_of(family.inside.runs)
    read = {
        id(atom): where[id(atom)][0]
        for equation in segment
        for atom in equation.invars
        if id(atom) in where
    }
    number = run_read(family.inside, read)
    return None if number in family.partners else number
