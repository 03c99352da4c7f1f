"""Calls of the user's functions: equal runs that one function created become calls of a helper."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import Caller, callers
from jaxsight_source.compat.parameters.sources import is_backward
from jaxsight_source.files.ours import OURS
from jaxsight_source.folding.families import (
    Placed,
    complete,
    divided_by_outputs,
    families_of,
    nest,
    replaced,
)
from jaxsight_source.folding.steps import SHORTEST_CALL, FoldedStep, Item, present, size_of
from jaxsight_source.folding.tokens import EquationNumbers
from jaxsight_source.text.names import identifier

Chains = Mapping[int, Sequence[Caller]]
"""The user's functions that created each item, outermost first, by the item's id."""

_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Functions that Python creates for comprehensions inside a function of the user's."""


def with_calls(
    equations: list[Any], outputs: Sequence[object], numbers: EquationNumbers
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
            if isinstance(equation, FoldedStep) and id(equation) not in chains:
                first_equation = present(equation.family.runs[equation.index])[0]
                chains[id(equation)] = starts[id(first_equation)]
    return equations


_Alike = dict[tuple[int, ...], list[tuple[int, int, str]]]
"""The start, stop and name of runs, by the tokens of their equations."""


def _alike(
    equations: Sequence[Item],
    numbers: EquationNumbers,
    chains: Chains,
    depths: Sequence[int],
) -> _Alike:
    """Return the runs that one call created each, by their tokens."""
    alike: _Alike = defaultdict(list)
    tokens = [numbers.of(equation) for equation in equations]
    for name, start, stop in _called(equations, chains, depths):
        backward = is_backward(equations[start])
        for first, last in _periods(equations, tokens, start, stop, backward=backward):
            if last - first > 1 and size_of(equations[first:last]) >= SHORTEST_CALL:
                alike[tuple(tokens[first:last])].append((first, last, name))
    return alike


def _families(
    equations: Sequence[Item], alike: _Alike, outputs: Sequence[object], numbers: EquationNumbers
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
    equations: Sequence[Item], chains: Chains, depths: Sequence[int]
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
    equations: Sequence[Item], tokens: Sequence[int], start: int, stop: int, *, backward: bool
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
        if from_end and size_of(equations[stop - period : stop]) >= SHORTEST_CALL:
            count = (stop - first) // period + 1
            begin = stop - count * period
            if begin > start:
                yield start, begin
            yield from ((at, at + period) for at in range(begin, stop, period))
            return
        if last - start >= enough and size_of(equations[start : start + period]) >= SHORTEST_CALL:
            end = start + ((last - start) // period + 1) * period
            yield from ((at, at + period) for at in range(start, end, period))
            if end < stop:
                yield end, stop
            return
    yield start, stop
