"""Calls of the user's functions: equal runs that one function created become calls of a helper."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import Caller, callers, is_backward
from jaxsight_source.compat.staging import is_literal
from jaxsight_source.equations.idioms import read_outside
from jaxsight_source.files.ours import OURS
from jaxsight_source.folding import steps
from jaxsight_source.folding.families import (
    Placed,
    complete,
    divided_by_outputs,
    families_of,
    nest,
    replaced,
)
from jaxsight_source.text.names import identifier

Chains = Mapping[int, Sequence[Caller]]
"""The user's functions that created each item, outermost first, by the item's id."""

_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Functions that Python creates for comprehensions inside a function of the user's."""


def with_calls(
    equations: list[Any], outputs: Sequence[object], numbers: steps.EquationNumbers
) -> list[object]:
    """Return the equations with helper calls in place of equal runs that one call created each.

    Innermost functions come first.
    """
    chains = _chains(equations)
    ranks: dict[tuple[str, str], int] = {}
    """The greatest depth of each function in the chains of calls."""
    for chain in _distinct(chains.values()):
        for depth, caller in enumerate(chain):
            ranks[caller[:2]] = max(ranks.get(caller[:2], 0), depth)
    for rank in range(max(ranks.values(), default=0), 0, -1):
        depths = _depths([chains[id(equation)] for equation in equations], ranks, rank)
        alike = _alike(equations, numbers, chains, depths)
        families = _families(equations, alike, outputs, numbers)
        if not families:
            continue
        starts: dict[int, Sequence[Caller]] = {}
        for _, places in families:
            for first, _ in places:
                starts[id(equations[first])] = chains[id(equations[first])][: depths[first]]
        equations = replaced(equations, families, outputs)
        for equation in equations:
            if isinstance(equation, steps.FoldedStep) and id(equation) not in chains:
                first_equation = steps.present(equation.family.runs[equation.index])[0]
                chains[id(equation)] = starts[id(first_equation)]
    return equations


_Alike = dict[tuple[int, ...], list[tuple[int, int, str]]]
"""The start, stop and name of runs, by the tokens of their equations."""


def _alike(
    equations: Sequence[steps.Item],
    numbers: steps.EquationNumbers,
    chains: Chains,
    depths: Sequence[int],
) -> _Alike:
    """Return the runs that one call created each, by their tokens."""
    alike: _Alike = defaultdict(list)
    tokens = [numbers.of(equation) for equation in equations]
    for name, start, stop in _called(equations, chains, depths):
        backward = is_backward(equations[start])
        for first, last in _periods(equations, tokens, start, stop, backward=backward):
            if last - first > 1 and steps.size_of(equations[first:last]) >= steps.SHORTEST_CALL:
                alike[tuple(tokens[first:last])].append((first, last, name))
    return alike


def _families(
    equations: Sequence[steps.Item],
    alike: _Alike,
    outputs: Sequence[object],
    numbers: steps.EquationNumbers,
) -> list[Placed]:
    """Return the families of equal runs, in the order of their first run."""
    families: list[Placed] = []
    for segments in alike.values():
        places = [(first, last) for first, last, _ in segments]
        families.extend(families_of(equations, places, segments[0][2]))
    if not families:
        return []
    families.sort(key=_first_start)
    nest([family for family, _ in families])
    complete(equations, families, itertools.chain.from_iterable(alike.values()), numbers)
    if divided := divided_by_outputs(equations, families, outputs):
        families = sorted(divided, key=_first_start)
        for family, _ in families:
            family.inside, family.partners = None, []
            family.returned.clear()
        nest([family for family, _ in families])
    return families


def _first_start(placed: Placed) -> tuple[int, int]:
    return placed[1][0]


def _depths(
    chains: Sequence[Sequence[Caller]], ranks: Mapping[tuple[str, str], int], rank: int
) -> list[int]:
    """Return, for each chain of calls, the position of a rank's innermost function, or 0."""
    depths = {
        id(chain): max(
            (at for at in range(1, len(chain)) if ranks[chain[at][:2]] == rank), default=0
        )
        for chain in _distinct(chains)
    }
    return [depths[id(chain)] for chain in chains]


def _distinct(chains: Iterable[Sequence[Caller]]) -> Iterable[Sequence[Caller]]:
    """Return chains of calls without those that are the same object as another."""
    return {id(chain): chain for chain in chains}.values()


def _chains(equations: Iterable[Equation]) -> dict[int, Sequence[Caller]]:
    """Return the user's functions that created each equation, outermost first, by its id."""
    own: dict[int, tuple[object, Sequence[Caller]]] = {}  # by the id of the chain, kept alive
    chains: dict[int, Sequence[Caller]] = {}
    for equation in equations:
        chain = callers(equation)
        if id(chain) not in own:
            ours = [index for index, caller in enumerate(chain) if caller[1].startswith(OURS)]
            users = chain[ours[-1] + 1 :] if ours else chain
            named = [caller for caller in users if not caller[0].endswith(_COMPREHENSIONS)]
            own[id(chain)] = chain, named
        chains[id(equation)] = own[id(chain)][1]
    return chains


def _called(
    equations: Sequence[steps.Item], chains: Chains, depths: Sequence[int]
) -> Iterator[tuple[str, int, int]]:
    """Yield the runs of equations that one call created: its function's name, start and stop."""

    def key(position: int) -> tuple[Hashable, ...] | None:
        depth = depths[position]
        if not depth:
            return None
        chain = chains[id(equations[position])]
        return (tuple(chain[:depth]), chain[depth][:2], is_backward(equations[position]))

    for call, group in itertools.groupby(range(len(equations)), key):
        if call is not None:
            positions = list(group)
            first = positions[0]
            caller = chains[id(equations[first])][depths[first]]
            yield _name_of(caller[0], bool(call[2])), first, positions[-1] + 1


def _name_of(qualified: str, backward: bool) -> str:
    """Return a helper's name: that of the function, or of the class whose instance is called."""
    words = [word for word in qualified.split(".") if word != "<locals>"]
    name = words[-1]
    if name.startswith("__") and len(words) > 1:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words[-2]).lower()
    name = identifier(name, "helper")
    return f"{name}_backward" if backward else name


def _periods(
    equations: Sequence[steps.Item], tokens: Sequence[int], start: int, stop: int, *, backward: bool
) -> Iterator[tuple[int, int]]:
    """Yield the spans of the repeats in a run, such as calls in a loop, or that of the whole run.

    The first or last repeat may differ and is then a span of its own: the first layer of a network
    has no derivative by its input, so a `backward` run begins with a complete repeat.
    """
    size = stop - start
    for period in range(1, size // 2 + 1):
        first, last = stop, start
        while first - period > start and tokens[first - period - 1] == tokens[first - 1]:
            first -= 1
        while last + period < stop and tokens[last] == tokens[last + period]:
            last += 1
        enough = max(period, size // 2 - period)
        from_end = stop - first >= enough and not (backward and last - start >= enough)
        if from_end and steps.size_of(equations[stop - period : stop]) >= steps.SHORTEST_CALL:
            count = (stop - first) // period + 1
            begin = stop - count * period
            if begin > start:
                yield start, begin
            yield from ((at, at + period) for at in range(begin, stop, period))
            return
        if (
            last - start >= enough
            and steps.size_of(equations[start : start + period]) >= steps.SHORTEST_CALL
        ):
            end = start + ((last - start) // period + 1) * period
            yield from ((at, at + period) for at in range(start, end, period))
            if end < stop:
                yield end, stop
            return
    yield start, stop


def folded(
    equations: Sequence[Any], outputs: Sequence[object], numbers: steps.EquationNumbers
) -> list[Any]:
    """Return the equations with steps in place of runs of them.

    Args:
        equations: those on which results depend, in order.
        outputs: the program's results.
        numbers: the numbers of equations, shared between calls.
    """
    if len(equations) < 2 * steps.SHORTEST_CALL:
        return list(equations)
    return with_loops(with_calls(list(equations), outputs, numbers), outputs, numbers)


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
    equations: list[object], outputs: Sequence[object], numbers: steps.EquationNumbers
) -> list[object]:
    """Return the equations with loops for tandem repeats, those that save the most first."""
    while True:
        tokens = np.array([numbers.of(equation, exact=False) for equation in equations], np.int64)
        readers = steps.readers_of(equations, outputs)
        weights = np.array([len(steps.members_of(equation)) for equation in equations])
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
) -> tuple[int, steps.FoldedLoop] | None:
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
    return first, steps.FoldedLoop(
        runs, carried, [init for init, _ in carried], varying, collected, finals
    )


_Carried = list[tuple[object, steps.Place]]
_Varying = list[tuple[object, ...]]


def _operands(runs: Sequence[Sequence[Any]]) -> tuple[_Carried, _Varying] | None:
    """Return the operands that are carried, and those that vary, as `FoldedLoop` has them.

    Return None if an iteration reads values of other iterations than the previous one.
    """
    computed = steps.sources_of(runs)
    carried: dict[tuple[int, steps.Place], tuple[object, steps.Place]] = {}
    varying: dict[tuple[Hashable, ...], tuple[object, ...]] = {}
    for position, equation in enumerate(runs[0]):
        for slot in range(len(equation.invars)):
            row = tuple(run[position].invars[slot] for run in runs)
            sources = [None if is_literal(atom) else computed.get(id(atom)) for atom in row]
            if not any(sources):
                keys = tuple(steps.atom_key(atom) for atom in row)
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
    runs: Sequence[Sequence[Any]], sent: set[steps.Place], readers: Mapping[int, list[Any]]
) -> tuple[list[steps.Place], list[steps.Place]]:
    """Return the results that are read after a loop: of all iterations, and of the last only.

    Args:
        sent: the results that the next iteration reads.
        readers: the equations that read each variable, by its id.
    """
    number_of = {id(equation): number for number, run in enumerate(runs) for equation in run}
    collected: list[steps.Place] = []
    finals: list[steps.Place] = []
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


def _loop_step(loop: steps.FoldedLoop) -> steps.FoldedStep:
    members = [
        inner for run in loop.runs for equation in run for inner in steps.members_of(equation)
    ]
    invars = read_outside(itertools.chain.from_iterable(loop.runs))
    last = loop.runs[-1]
    outvars = [last[position].outvars[output] for _, (position, output) in loop.carried]
    outvars += [last[position].outvars[output] for position, output in loop.finals]
    for run in loop.runs:
        outvars += [run[position].outvars[output] for position, output in loop.collected]
    unique = list({id(var): var for var in outvars}.values())
    effects = frozenset(effect for equation in members for effect in equation.effects)
    source = loop.runs[0][0].source_info
    return steps.FoldedStep(
        steps.LOOP, loop, 0, list(invars.values()), unique, members, effects, source
    )
