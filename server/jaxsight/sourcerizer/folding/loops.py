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
    made = {
        id(var): (number, (place, result))
        for number, run in enumerate(runs)
        for place, item in enumerate(run)
        for result, var in enumerate(item.outvars)
    }
    carried: dict[tuple[int, tuple[int, int]], tuple[Any, tuple[int, int]]] = {}
    varying: dict[tuple[Hashable, ...], tuple[Any, ...]] = {}
    for place, item in enumerate(runs[0]):
        for slot in range(len(item.invars)):
            row = tuple(run[place].invars[slot] for run in runs)
            sources = [None if is_literal(atom) else made.get(id(atom)) for atom in row]
            if not any(sources):
                keys = tuple(atom_key(atom) for atom in row)
                if len(set(keys)) > 1:
                    varying.setdefault(keys, row)
                continue
            if sources[0] is None:
                expected = [(number - 1, sources[1][1]) if sources[1] else None
                            for number in range(1, count)]  # fmt: skip
                if sources[1:] != expected or is_literal(row[0]):
                    return None
                carried.setdefault((id(row[0]), sources[1][1]), (row[0], sources[1][1]))  # type: ignore[index]
            elif any(
                source is None or source != (number, sources[0][1])
                for number, source in enumerate(sources)
            ):
                return None
    inside = [set(map(id, run)) for run in runs]
    sent = {place for _, place in carried.values()}
    collected: list[tuple[int, int]] = []
    finals: list[tuple[int, int]] = []
    for place, item in enumerate(runs[0]):
        for result in range(len(item.outvars)):
            outside = []
            for number, run in enumerate(runs):
                following = inside[number + 1] if number + 1 < count else set()
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
    if len(carried) > _MOST_CARRIED:
        return None
    return first, Loop(
        runs,
        list(carried.values()),
        [init for init, _ in carried.values()],
        list(varying.values()),
        collected,
        finals,
    )


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
