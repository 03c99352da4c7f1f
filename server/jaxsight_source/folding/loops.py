"""Tandem repeats as Python loops."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.idioms import read_outside
from jaxsight_source.folding.steps import (
    LOOP,
    FoldedLoop,
    FoldedStep,
    Place,
    members_of,
    readers_of,
    sources_of,
)
from jaxsight_source.folding.tokens import EquationNumbers, atom_key

_Numbers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

LEAST_SAVED = 16
"""The minimum number of equations that a loop must save.

A choice: less would hide two short, similar statements in a loop over their operands.
"""

_MOST_TRIED = 24
"""The number of tandem repeats that are examined, those that save the most.

A repeat of a period is also one of twice that period, and so on: these take the other places.
"""


def tandems(tokens: _Numbers, weights: _Numbers) -> list[tuple[int, int, int]]:
    """Return tandem repeats as start, length and count, with every phase; the best first."""
    repeats: list[tuple[int, int, int]] = []
    for _, start, period, length in _runs(tokens, weights):
        count = length // period + 1
        slack = length + period - count * period
        repeats.extend((start + phase, period, count) for phase in range(slack + 1))
        if count > 2:
            repeats.extend((start + phase, period, count - 1) for phase in range(slack + 1, period))
    return repeats


def _runs(tokens: _Numbers, weights: _Numbers) -> list[tuple[int, int, int, int]]:
    """Return tandem repeats, the best first.

    Each is the number of equations that it saves, its start, its period, and the length of the
    repeats after the first one.
    """
    repeats: list[tuple[int, int, int, int]] = []
    size = len(tokens)
    ranks = np.unique(tokens, return_inverse=True)[1].astype(np.int32)  # half the memory to compare
    total = np.concatenate([[0], np.cumsum(weights)])
    for period in range(1, size // 2 + 1):
        equal = ranks[period:] == ranks[:-period]
        if not equal.any():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[0], equal.astype(np.int8), [0]])))
        for start, stop in edges.reshape(-1, 2):
            length = int(stop - start)
            count = length // period + 1
            if count < 2:
                continue
            saved = int(total[start + (count - 1) * period] - total[start])
            if saved >= LEAST_SAVED:
                repeats.append((saved, int(start), period, length))
    repeats.sort(key=lambda repeat: (-repeat[0], repeat[2]))
    return repeats[:_MOST_TRIED]


_MOST_CARRIED = 4
"""The maximum number of carried values; more indicate that iterations were cut at a wrong place."""


def with_loops(
    equations: list[object], outputs: Sequence[object], numbers: EquationNumbers
) -> list[object]:
    """Return the equations with loops for tandem repeats, those that save the most first."""
    while True:
        tokens = np.array([numbers.of(equation, exact=False) for equation in equations], np.int64)
        readers = readers_of(equations, outputs)
        weights = np.array([len(members_of(equation)) for equation in equations])
        for first, period, count in tandems(tokens, weights):
            loop = _loop(equations, first, period, count, readers)
            if loop is not None:
                start, repeat = loop
                stop = start + period * len(repeat.runs)
                step = _loop_step(repeat)
                equations = [*equations[:start], step, *equations[stop:]]
                break
        else:
            return equations


def _loop(
    equations: Sequence[object],
    first: int,
    period: int,
    count: int,
    readers: Mapping[int, list[object]],
) -> tuple[int, FoldedLoop] | None:
    """Return a tandem repeat as a loop, with its start.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    runs = [list(equations[first + k * period : first + (k + 1) * period]) for k in range(count)]
    operands = _operands(runs)
    if operands is None:
        return None
    carried, varying = operands
    sent = {position for _, position in carried}
    collected, finals = _read_after(runs, sent, readers)
    if len(carried) > _MOST_CARRIED:
        return None
    return first, FoldedLoop(
        runs, carried, [init for init, _ in carried], varying, collected, finals
    )


_Carried = list[tuple[object, Place]]
_Varying = list[tuple[object, ...]]


def _operands(runs: Sequence[Sequence[Any]]) -> tuple[_Carried, _Varying] | None:
    """Return the operands that are carried, and those that vary, as `FoldedLoop` has them.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    computed = sources_of(runs)
    carried: dict[tuple[int, Place], tuple[object, Place]] = {}
    varying: dict[tuple[Hashable, ...], tuple[object, ...]] = {}
    for position, equation in enumerate(runs[0]):
        for slot in range(len(equation.invars)):
            row = tuple(run[position].invars[slot] for run in runs)
            sources = [None if is_literal(atom) else computed.get(id(atom)) for atom in row]
            if not any(sources):
                keys = tuple(atom_key(atom) for atom in row)
                if len(set(keys)) > 1:
                    varying.setdefault(keys, row)
            elif sources[0] is None:
                second = sources[1]  # the place of the first iteration that the second one reads
                if second is None or is_literal(row[0]):
                    return None
                if sources[1:] != [(number, second[1]) for number in range(len(runs) - 1)]:
                    return None
                carried.setdefault((id(row[0]), second[1]), (row[0], second[1]))
            elif any(
                source is None or source != (number, sources[0][1])
                for number, source in enumerate(sources)
            ):
                return None
    return list(carried.values()), list(varying.values())


def _read_after(
    runs: Sequence[Sequence[Any]], sent: set[Place], readers: Mapping[int, list[Any]]
) -> tuple[list[Place], list[Place]]:
    """Return the results that are read after a loop: of all iterations, and of the last only.

    Args:
        sent: the results that the next iteration reads.
        readers: the equations that read each variable, by its id.
    """
    number_of = {id(equation): number for number, run in enumerate(runs) for equation in run}
    collected: list[Place] = []
    finals: list[Place] = []
    for position, equation in enumerate(runs[0]):
        for output in range(len(equation.outvars)):
            is_sent = (position, output) in sent
            outside = [
                any(
                    (reader_number := number_of.get(id(reader))) != number
                    and not (is_sent and reader_number == number + 1)
                    for reader in readers.get(id(run[position].outvars[output]), ())
                )
                for number, run in enumerate(runs)
            ]
            if any(outside[:-1]):
                collected.append((position, output))
            elif outside[-1] and not is_sent:
                finals.append((position, output))
    return collected, finals


def _loop_step(loop: FoldedLoop) -> FoldedStep:
    members = [inner for run in loop.runs for equation in run for inner in members_of(equation)]
    invars = read_outside(itertools.chain.from_iterable(loop.runs))
    last = loop.runs[-1]
    outvars = [last[position].outvars[output] for _, (position, output) in loop.carried]
    outvars += [last[position].outvars[output] for position, output in loop.finals]
    for run in loop.runs:
        outvars += [run[position].outvars[output] for position, output in loop.collected]
    unique = list({id(var): var for var in outvars}.values())
    effects = frozenset(effect for equation in members for effect in equation.effects)
    source = loop.runs[0][0].source_info
    return FoldedStep(LOOP, loop, 0, list(invars.values()), unique, members, effects, source)
