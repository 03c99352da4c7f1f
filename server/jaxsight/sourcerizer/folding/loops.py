"""Tandem repeats as Python loops."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxsight.interpreters.compat.staging import (
    is_literal,
)
from jaxsight.sourcerizer.folding.steps import (
    LOOP,
    Loop,
    Place,
    Step,
    members_of,
    readers_of,
)
from jaxsight.sourcerizer.folding.tandems import tandems
from jaxsight.sourcerizer.folding.tokens import atom_key, token_of

_MOST_CARRIED = 4
"""The maximum number of carried values; more indicate that iterations were cut at a wrong place."""


def with_loops(items: list[Any], outputs: Sequence[Any], known: dict[Any, int]) -> list[Any]:
    """Return the items with loops in place of tandem repeats, those that save the most first."""
    while True:
        tokens = np.array([token_of(item, known, exact=False) for item in items], np.int64)
        readers = readers_of(items, outputs)
        weights = np.array([len(members_of(item)) for item in items])
        for first, period, count in tandems(tokens, weights):
            loop = _loop(items, first, period, count, readers)
            if loop is not None:
                start, made = loop
                stop = start + period * len(made.runs)
                step = _loop_step(made)
                items = [*items[:start], step, *items[stop:]]
                break
        else:
            return items


def _loop(
    items: Sequence[Any],
    first: int,
    period: int,
    count: int,
    readers: Mapping[int, list[Any]],
) -> tuple[int, Loop] | None:
    """Return a tandem repeat as a loop, with its start.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    runs = [list(items[first + k * period : first + (k + 1) * period]) for k in range(count)]
    operands = _operands(runs)
    if operands is None:
        return None
    carried, varying = operands
    sent = {place for _, place in carried}
    collected, finals = _read_after(runs, sent, readers)
    if len(carried) > _MOST_CARRIED:
        return None
    return first, Loop(runs, carried, [init for init, _ in carried], varying, collected, finals)


_Carried = list[tuple[Any, Place]]
_Varying = list[tuple[Any, ...]]


def _operands(runs: Sequence[Sequence[Any]]) -> tuple[_Carried, _Varying] | None:
    """Return the operands that are carried, and those that vary, as `Loop` has them.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    sources_of = {
        id(var): (number, (place, result))
        for number, run in enumerate(runs)
        for place, item in enumerate(run)
        for result, var in enumerate(item.outvars)
    }
    carried: dict[tuple[int, Place], tuple[Any, Place]] = {}
    varying: dict[tuple[Hashable, ...], tuple[Any, ...]] = {}
    for place, item in enumerate(runs[0]):
        for slot in range(len(item.invars)):
            row = tuple(run[place].invars[slot] for run in runs)
            sources = [None if is_literal(atom) else sources_of.get(id(atom)) for atom in row]
            if not any(sources):
                keys = tuple(atom_key(atom) for atom in row)
                if len(set(keys)) > 1:
                    varying.setdefault(keys, row)
            elif sources[0] is None:
                source = _carried_from(sources)
                if source is None or is_literal(row[0]):
                    return None
                carried.setdefault((id(row[0]), source), (row[0], source))
            elif any(
                source is None or source != (number, sources[0][1])
                for number, source in enumerate(sources)
            ):
                return None
    return list(carried.values()), list(varying.values())


def _carried_from(sources: Sequence[tuple[int, Place] | None]) -> Place | None:
    """Return the place of the previous iteration that all iterations but the first read, or None.

    `sources` has, for each iteration, the iteration and the place that its operand comes from.
    """
    second = sources[1]
    if second is None:
        return None
    expected = [(number - 1, second[1]) for number in range(1, len(sources))]
    return second[1] if list(sources[1:]) == expected else None


def _read_after(
    runs: Sequence[Sequence[Any]], sent: set[Place], readers: Mapping[int, list[Any]]
) -> tuple[list[Place], list[Place]]:
    """Return the results that are read after a loop: of all iterations, and of the last only.

    Args:
        sent: the results that the next iteration reads.
        readers: the items that read each variable, by its id.
    """
    inside = [set(map(id, run)) for run in runs]
    collected: list[Place] = []
    finals: list[Place] = []
    for place, item in enumerate(runs[0]):
        for result in range(len(item.outvars)):
            outside = []
            for number, run in enumerate(runs):
                following = inside[number + 1] if number + 1 < len(runs) else set()
                own = inside[number] | (following if (place, result) in sent else set())
                outside.append(
                    any(
                        reader is None or id(reader) not in own
                        for reader in readers.get(id(run[place].outvars[result]), ())
                    )
                )
            if any(outside[:-1]):
                collected.append((place, result))
            elif outside[-1] and (place, result) not in sent:
                finals.append((place, result))
    return collected, finals


def _loop_step(loop: Loop) -> Step:
    members = [inner for run in loop.runs for item in run for inner in members_of(item)]
    own = {id(var) for run in loop.runs for item in run for var in item.outvars}
    invars: dict[int, Any] = {
        id(atom): atom
        for run in loop.runs
        for item in run
        for atom in item.invars
        if not is_literal(atom) and id(atom) not in own
    }
    last = loop.runs[-1]
    outvars = [last[place].outvars[result] for _, (place, result) in loop.carried]
    outvars += [last[place].outvars[result] for place, result in loop.finals]
    for run in loop.runs:
        outvars += [run[place].outvars[result] for place, result in loop.collected]
    unique = list({id(var): var for var in outvars}.values())
    effects = frozenset(effect for item in members for effect in item.effects)
    source = loop.runs[0][0].source_info
    return Step(LOOP, loop, 0, list(invars.values()), unique, members, effects, source)
