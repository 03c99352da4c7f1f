"""Compare what functions are under two versions of JAX."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from jaxsight.cli.upgrading.examining import Costs, Examination, ExaminedFunction, FunctionName
from jaxsight.text import units
from jaxsight.wire.messages.replies import Sampled

_GROWN, _FEW = 1.02, 64
"""Bytes differ above this factor plus so many bytes: less reports paddings and counters."""
_LONGER = {"trace": (1.5, 0.5), "compile": (2.0, 2.0)}
"""Times differ above this factor if they differ by so many seconds, too, a choice: of two traces
the shorter one counts, while a compile happens once, perhaps beside other work."""
_ROUNDING = 64.0
"""A difference up to this factor of what the inputs' last bits change is rounding, as in
`tracer/comparison/two_ways.py`."""


class Aspect(Enum):
    """What differs; the values are the words of the report and of JSON."""

    ERROR = "error"
    TYPES = "types"
    NUMBERS = "numbers"
    KERNELS = "kernels"
    LAUNCHES = "launches"
    TEMPORARIES = "temp"
    TRAFFIC = "traffic"
    COMMUNICATION = "communication"
    DONATION = "donated inputs that are not reused"
    TRACE_TIME = "trace"
    COMPILE_TIME = "compile"
    DEPRECATION = "deprecation"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that another version changes."""

    aspect: Aspect
    words: str
    """`kernels 2 → 3`, `result 0 differs: 1.5 instead of 2.0`."""
    is_worse: bool
    """Whether it is a reason not to upgrade as the code is: an error, other numbers, more costs."""


@dataclass(frozen=True, slots=True)
class ComparedFunction:
    """A function under both versions."""

    name: FunctionName
    before: ExaminedFunction
    after: ExaminedFunction
    differences: tuple[Difference, ...]
    not_compared: str = ""
    """Why its numbers are not compared, if they are not."""

    @property
    def is_worse(self) -> bool:
        """Whether the new version makes something worse."""
        return any(each.is_worse for each in self.differences)


def compared(before: Examination, after: Examination) -> list[ComparedFunction]:
    """Return the functions of both examinations, in order."""
    names = dict.fromkeys((*before.functions, *after.functions))
    nothing = ExaminedFunction(error="not examined")
    return [
        _compared(name, before.functions.get(name, nothing), after.functions.get(name, nothing))
        for name in names
    ]


def _compared(
    name: FunctionName, before: ExaminedFunction, after: ExaminedFunction
) -> ComparedFunction:
    found: list[Difference] = []
    if before.error != after.error:
        found.append(_error(before, after))
    both_traced = bool(before.outputs) and bool(after.outputs)
    if both_traced and before.inputs == after.inputs and before.outputs != after.outputs:
        words = f"returns {after.outputs} instead of {before.outputs}"
        found.append(Difference(Aspect.TYPES, words, is_worse=True))
    not_compared = ""
    if both_traced and not any(each.aspect is Aspect.TYPES for each in found):
        not_compared = _reason(before, after)
        if not not_compared:
            found += _numbers(before.results, after.results)
    if before.costs is not None and after.costs is not None:
        found += _costs(before.costs, after.costs)
    found += _times(before, after)
    new = [each for each in after.deprecations if each not in before.deprecations]
    found += [Difference(Aspect.DEPRECATION, f"deprecated: {each}", is_worse=False) for each in new]
    return ComparedFunction(name, before, after, tuple(found), not_compared)


def _error(before: ExaminedFunction, after: ExaminedFunction) -> Difference:
    if after.error and before.error:
        return Difference(Aspect.ERROR, f"another error: {after.error}", is_worse=False)
    if after.error:
        return Difference(Aspect.ERROR, after.error, is_worse=True)
    return Difference(Aspect.ERROR, f"no longer: {before.error}", is_worse=False)


def _reason(before: ExaminedFunction, after: ExaminedFunction) -> str:
    """Return why the numbers of two forms are not compared; empty if they are."""
    if before.inputs != after.inputs:
        return f"other inputs: {after.described} instead of {before.described}"
    return before.not_run or after.not_run


def _numbers(before: Sequence[Sampled], after: Sequence[Sampled]) -> Iterator[Difference]:
    """Yield the first difference of each result."""
    told: set[str] = set()
    for first, second in zip(before, after, strict=False):
        if first.name in told or first.name != second.name:
            continue
        usual = _apart(first, second, _read(first.usual), _read(second.usual))
        if usual is None:
            continue
        told.add(first.name)
        was, now = usual
        plain = _apart(first, second, _read(first.second), _read(second.second))
        how = "" if plain is not None else ", but not without optimizations"
        words = f"{first.name} differs{how}: {now:.6g} instead of {was:.6g}"
        yield Difference(Aspect.NUMBERS, words, is_worse=True)


def _read(sample: str) -> tuple[float, ...]:
    data = base64.b64decode(sample)
    return struct.unpack(f"<{len(data) // 8}d", data)


def _apart(
    first: Sampled, second: Sampled, before: Sequence[float], after: Sequence[float]
) -> tuple[float, float] | None:
    """Return the two numbers of the largest difference that is not rounding."""
    relative = max(first.relative, second.relative)
    absolute = max(
        first.absolute, second.absolute, _ROUNDING * first.moved, _ROUNDING * second.moved
    )
    largest: tuple[float, int] | None = None
    for index, (was, now) in enumerate(zip(before, after, strict=False)):
        if was == now or (math.isnan(was) and math.isnan(now)):
            continue
        distance = abs(was - now)
        if math.isfinite(distance) and distance <= absolute + relative * max(abs(was), abs(now)):
            continue
        rank = distance if math.isfinite(distance) else math.inf
        if largest is None or rank > largest[0]:
            largest = rank, index
    return None if largest is None else (before[largest[1]], after[largest[1]])


def _costs(before: Costs, after: Costs) -> Iterator[Difference]:
    kernels, launches = (before.kernels, after.kernels), (before.launches, after.launches)
    counts = [(Aspect.KERNELS, *kernels)]
    if launches != kernels:
        counts.append((Aspect.LAUNCHES, *launches))
    counts.append((Aspect.DONATION, before.donated, after.donated))
    for aspect, was, now in counts:
        if was != now:
            yield Difference(aspect, f"{aspect.value} {was} → {now}", is_worse=now > was)
    sizes = [
        (Aspect.TEMPORARIES, before.temporaries, after.temporaries),
        (Aspect.TRAFFIC, before.moved, after.moved),
        (Aspect.COMMUNICATION, before.communicated, after.communicated),
    ]
    for aspect, was, now in sizes:
        is_worse, is_better = _is_more(was, now), _is_more(now, was)
        if is_worse or is_better:
            words = f"{aspect.value} {units.size(was)} → {units.size(now)}"
            yield Difference(aspect, words, is_worse=is_worse)


def _is_more(before: int, after: int) -> bool:
    return before >= 0 and after >= 0 and after > before * _GROWN + _FEW


def _times(before: ExaminedFunction, after: ExaminedFunction) -> Iterator[Difference]:
    times = [
        (Aspect.TRACE_TIME, before.trace_seconds, after.trace_seconds),
        (Aspect.COMPILE_TIME, before.compile_seconds, after.compile_seconds),
    ]
    for aspect, was, now in times:
        if was is None or now is None:
            continue
        factor, least = _LONGER[aspect.value]
        is_worse = now > was * factor and now > was + least
        is_better = was > now * factor and was > now + least
        if is_worse or is_better:
            words = f"{aspect.value} {units.time(was)} → {units.time(now)}"
            yield Difference(aspect, words, is_worse=is_worse)
