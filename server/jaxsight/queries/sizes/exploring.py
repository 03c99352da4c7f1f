"""Trace a function with other sizes, until its dimensions are explained.

The first sizes have no relation to each other. If the function does not trace with them, relations
of the given sizes are kept (`samples.levels`). Where several formulas explain a dimension because
a relation was kept, the relation is broken alone: either the function traces, and only one formula
remains, or it needs the relation, and the formulas are equal for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxsight.examples.resizing import SizedInputs
from jaxsight.queries.sizes import naming, samples
from jaxsight.queries.sizes.naming import BLANK, Choose, SizeNames
from jaxsight.queries.sizes.samples import Divides, Multiple, Ordered, Relation
from jaxsight.wire.messages.replies import Failed, Traced

Sizes = Mapping[str, int]
Trace = Callable[[SizedInputs, Sizes], Awaitable[Traced | Failed]]
"""Traces the function with sizes; raises `Stopped` if that is not possible."""

_LARGEST = 50_000
"""Larger sizes are not tried unless given: arrays made while tracing would fill the memory."""
_MOST_BROKEN = 8
"""Relations that are broken alone, a choice: each takes a trace."""
_OTHERS = (2, 3, 4)
"""Factors of a size that is tried alone: parts of the function may accept one by chance."""
_LARGE = 97
"""Least size of the last sample: formulas of small sizes coincide."""
_SEEDS = 5
_MOST_SAMPLES = 4
"""Draws of sizes, and traces with the same relations while several formulas explain a dimension: a
choice. `tools/size_names` measures how many names they yield, and that none is wrong."""


class Stopped(Exception):
    """No further trace is possible: the time is up, or the tracer ended."""


@dataclass(frozen=True, slots=True)
class Explored:
    """What is known of a function from its traces with other sizes."""

    names: SizeNames = field(default_factory=SizeNames)
    sizes: tuple[tuple[str, int], ...] = ()
    """The given sizes that names stand for."""
    traces: int = 0
    """Number of traces."""


@dataclass(slots=True)
class _Search:
    """The traces of a function so far."""

    trace: Trace
    count: int = 0
    sizes: list[Sizes] = field(default_factory=list)
    samples: list[Sizes] = field(default_factory=list)
    """The sizes of `traces`, with those that are defined by others."""
    traces: list[Traced] = field(default_factory=list)

    async def try_sizes(self, inputs: SizedInputs, sizes: Sizes) -> Traced | Failed:
        """Trace with sizes, and keep the trace."""
        self.count += 1
        reply = await self.trace(inputs, sizes)
        if isinstance(reply, Traced):
            self.sizes.append(sizes)
            self.samples.append(inputs.all_sizes(sizes))
            self.traces.append(reply)
        return reply


async def explore(
    inputs: SizedInputs, by_number: SizedInputs | None, first: Traced, trace: Trace
) -> Explored:
    """Return what traces with other sizes show about a function.

    Args:
        inputs: its example inputs.
        by_number: the same, in which equal numbers are one size; tried if `inputs` fail.
        first: the trace with the given sizes.
        trace: traces with other sizes.
    """
    search = _Search(trace)
    try:
        return await _explored(search, inputs, by_number, first)
    except Stopped:
        return Explored(traces=search.count)


async def _explored(
    search: _Search, inputs: SizedInputs, by_number: SizedInputs | None, first: Traced
) -> Explored:
    if not inputs.sizes:
        return Explored(_names_of([first], lambda _: "", inputs))  # all sizes are the code's own
    for one, most in ((inputs, 2 if by_number is not None else None), (by_number, None)):
        if one is None:
            continue
        for kept in samples.levels(one.sizes)[:most]:
            if await _both(search, one, kept, ()):
                return await _named(search, one, first, kept, ())
    if inputs.is_assumed and by_number is not None:
        inputs = by_number
    singles = [name for name, size in inputs.sizes.items() if size <= 1]
    tries = [tuple(singles)] if singles else []
    tries += [(name,) for name in inputs.sizes if name not in singles]
    if inputs.guessed:
        tries.append(tuple(name for name in inputs.sizes if name in inputs.guessed))
    for names in tries:
        levels = samples.levels(inputs.sizes)
        for kept in dict.fromkeys((levels[min(1, len(levels) - 1)], levels[-1])):
            if not await _both(search, inputs, kept, names):
                continue
            if inputs.is_assumed and not await _are_needed(search, inputs, names):
                inputs = replace(inputs, is_covered=False)
            return await _named(search, inputs, first, kept, names)
    if inputs.is_assumed and len(inputs.sizes) == 1:
        is_needed = await _are_needed(search, inputs, tuple(inputs.sizes))
        static = _names_of([first], lambda _: "", inputs) if is_needed else SizeNames()
        return Explored(static, traces=search.count)
    return Explored(traces=search.count)


async def _both(
    search: _Search, inputs: SizedInputs, kept: Sequence[Relation], fixed: tuple[str, ...]
) -> bool:
    """Trace with two samples that have the relations, and return whether both succeeded."""
    search.sizes.clear()
    search.samples.clear()
    search.traces.clear()
    if set(inputs.sizes) <= set(fixed):
        return False
    unordered = [relation for relation in kept if not isinstance(relation, Ordered)]
    candidates = [samples.sample(inputs.sizes, kept, seed, fixed) for seed in range(_SEEDS)]
    candidates.insert(1, samples.sample(inputs.sizes, unordered, 0, fixed))
    for number, sizes in enumerate(candidates):
        if sizes in search.sizes or not _usable(inputs.sizes, sizes, unordered):
            continue
        reply = await search.try_sizes(inputs, sizes)
        if isinstance(reply, Failed) and number == 0:
            return False
        if len(search.traces) == 2:
            return True
    return False


def _usable(original: Sizes, sizes: Sizes, kept: Sequence[Relation]) -> bool:
    fits = all(n <= max(_LARGEST, original[name]) for name, n in sizes.items())
    return fits and all(relation.holds(sizes) for relation in kept)


async def _named(
    search: _Search,
    inputs: SizedInputs,
    first: Traced,
    kept: Sequence[Relation],
    fixed: tuple[str, ...],
) -> Explored:
    """Return the names of dimensions, after breaking relations that leave a choice of formulas."""
    original = inputs.all_sizes(inputs.sizes)
    names = [name for name in original if name not in fixed]
    for seed in range(_SEEDS):
        sizes = samples.sample(inputs.sizes, kept, seed, fixed)
        if len(search.traces) >= _MOST_SAMPLES or not _usable(inputs.sizes, sizes, kept):
            continue
        if _tells(search, first, inputs, names, sizes):
            await search.try_sizes(inputs, sizes)
    needed: list[Relation] = []
    tried, confirmed = 0, False
    for broken, rest in _broken(kept, needed, inputs.sizes):
        if tried == _MOST_BROKEN:
            break
        telling = [
            sizes
            for sizes in _without(inputs.sizes, broken, rest, fixed)
            if isinstance(broken[0], Divides) or _tells(search, first, inputs, names, sizes)
        ]
        if not telling:
            continue
        tried += 1
        replies = [await search.try_sizes(inputs, sizes) for sizes in telling]
        if all(isinstance(reply, Failed) for reply in replies) and len(broken) == 1:
            needed += broken
    for seed in range(2):
        sizes = samples.sample(inputs.sizes, needed, seed, fixed, least=_LARGE)
        if _usable(inputs.sizes, sizes, needed):
            confirmed = isinstance(await search.try_sizes(inputs, sizes), Traced)
            if confirmed:
                break
    other_samples = (samples.sample(inputs.sizes, needed, seed, fixed) for seed in range(7))
    related = [
        inputs.all_sizes(sizes)
        for sizes in other_samples
        if all(relation.holds(sizes) for relation in needed)
    ]
    choose = naming.chooser(names, [original, *search.samples], related, divides=confirmed)
    traces = [first, *search.traces]
    shown = tuple((name, original[name]) for name in names)
    return Explored(_names_of(traces, choose, inputs), shown, traces=search.count)


def _names_of(traces: Sequence[Traced], choose: Choose, inputs: SizedInputs) -> SizeNames:
    """Return types; those of assumed inputs have formulas or blanks for numbers that follow."""
    if not inputs.is_assumed:
        return naming.names_of(traces, choose)

    def unless_assumed(numbers: Sequence[int]) -> str:
        is_static = inputs.is_covered and len(set(numbers)) == 1
        return choose(numbers) or (str(numbers[0]) if is_static else BLANK)

    names = naming.names_of(traces, unless_assumed, naming.blanked)
    jaxpr = naming.named_program([trace.jaxpr for trace in traces], unless_assumed)
    return replace(names, jaxpr=jaxpr if inputs.is_covered else "", inputs=inputs)


async def _are_needed(search: _Search, inputs: SizedInputs, names: Sequence[str]) -> bool:
    """Return whether a function fails with other sizes than the given ones, one at a time."""
    for name in names:
        for factor in _OTHERS:
            search.count += 1
            sizes = {**inputs.sizes, name: factor * inputs.sizes[name]}
            if isinstance(await search.trace(inputs, sizes), Traced):
                return False
    return True


def _broken(
    kept: Sequence[Relation], needed: list[Relation], given: Sizes
) -> Iterator[tuple[Sequence[Relation], Sequence[Relation]]]:
    """Yield relations to break together, and those to keep meanwhile.

    First each relation but the order, then the whole order, then the order of each pair. `needed`
    grows meanwhile.
    """
    order = [relation for relation in kept if isinstance(relation, Ordered)]
    others = [relation for relation in kept if not isinstance(relation, Ordered)]
    for relation in reversed(others):
        rest = [other for other in kept if not _implies(other, relation, given)]
        for stronger, weaker in samples.weakened(relation):
            yield [stronger], [*rest, *weaker]
    multiples = [relation for relation in others if isinstance(relation, Multiple)]
    yield order, list(needed)
    yield order, [*multiples, *needed]
    yield order, others
    for pair in order:
        names = {pair.name, pair.other}
        rest = [r for r in kept if not (isinstance(r, Ordered | Divides) and _names(r) == names)]
        yield [pair], rest


def _implies(other: Relation, relation: Relation, given: Sizes) -> bool:
    """Return whether sizes with another relation may have to have a relation, too."""
    if isinstance(other, Divides) and isinstance(relation, Divides):
        is_multiple = given[other.divisor] % given[relation.divisor] == 0
        return other.name == relation.name and is_multiple
    return other is relation


def _names(relation: Ordered | Divides) -> set[str]:
    other = relation.other if isinstance(relation, Ordered) else relation.divisor
    return {relation.name, other}


def _without(
    original: Sizes, broken: Sequence[Relation], rest: Sequence[Relation], fixed: tuple[str, ...]
) -> Iterator[Sizes]:
    """Yield sizes that do not have some relations, but the others.

    Of sizes that are not divisible, also such with the quotient 1.
    """
    candidates = [samples.sample(original, rest, seed, fixed) for seed in range(_SEEDS)]
    candidates = [sizes for sizes in candidates if not all(r.holds(sizes) for r in broken)]
    yield from [sizes for sizes in candidates if _usable(original, sizes, rest)][:1]
    for relation in broken:
        if isinstance(relation, Divides) and relation.name not in fixed and candidates:
            first = candidates[0]
            divisor = first[relation.divisor]
            with_quotient_one = (
                {**first, relation.name: size} for size in range(2 * divisor - 1, divisor, -1)
            )
            yield from [sizes for sizes in with_quotient_one if _usable(original, sizes, rest)][:1]
            # What is divided may be divisible because of the other sizes.
            part = first[relation.name] // divisor * divisor
            related = {relation.name, relation.divisor, *fixed}
            scaled = {n: s if n in related else s * part for n, s in first.items()}
            if part and scaled != first and not relation.holds(scaled):
                yield scaled


def _tells(
    search: _Search, first: Traced, inputs: SizedInputs, names: Sequence[str], sizes: Sizes
) -> bool:
    """Return whether formulas that explain the same dimension differ for some sizes."""
    original, others = inputs.all_sizes(inputs.sizes), inputs.all_sizes(sizes)
    for numbers in naming.dimensions([first, *search.traces]):
        formulas = naming.explanations(names, [original, *search.samples], numbers)
        if len({formula.value(others) for formula in formulas}) > 1:
            return True
    return False
