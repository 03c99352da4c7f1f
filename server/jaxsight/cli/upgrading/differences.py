"""Compare what functions are under two versions of JAX."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from jaxsight.cli.upgrading.examining import ExaminedFunction, ExaminedProject, FunctionName
from jaxsight.locks.differences import Figure, differences
from jaxsight.locks.facts import UNKNOWN, ProgramFacts
from jaxsight.locks.notation import Tolerance
from jaxsight.text import units
from jaxsight.wire.messages.replies import Sampled

_SIZES = ("temp", "traffic", "moved")
_PADDING = Tolerance("2%", share=0.02, amount=64)
"""How far bytes may be apart: less reports paddings and counters."""
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


_ASPECTS = {
    Figure.KERNELS: Aspect.KERNELS,
    Figure.LAUNCHES: Aspect.LAUNCHES,
    Figure.TEMPORARIES: Aspect.TEMPORARIES,
    Figure.TRAFFIC: Aspect.TRAFFIC,
    Figure.MOVED: Aspect.COMMUNICATION,
    Figure.DONATIONS: Aspect.DONATION,
}
"""The figures that are compared: equations and loops cost nothing by themselves."""


@dataclass(frozen=True, slots=True)
class VersionDifference:
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
    differences: tuple[VersionDifference, ...]
    not_compared: str = ""
    """Why its numbers are not compared, if they are not."""

    @staticmethod
    def of(
        name: FunctionName, before: ExaminedFunction, after: ExaminedFunction
    ) -> ComparedFunction:
        """Compare a function under both versions."""
        found = list(_errors(before.error, after.error))
        both_traced = bool(before.outputs) and bool(after.outputs)
        same_inputs = before.inputs == after.inputs
        not_compared = before.not_run or after.not_run
        if both_traced and not same_inputs:
            not_compared = f"other inputs: {after.described} instead of {before.described}"
        elif both_traced and before.outputs != after.outputs:
            words = f"returns {after.outputs} instead of {before.outputs}"
            found.append(VersionDifference(Aspect.TYPES, words, is_worse=True))
        elif both_traced and not not_compared:
            found += _numbers(before.results, after.results)
            if slopes_not_run := before.slopes_not_run or after.slopes_not_run:
                not_compared = f"the gradient: {slopes_not_run}"
            else:
                found += _numbers(before.slopes, after.slopes)
        if before.costs is not None and after.costs is not None:
            found += _costs(before.costs, after.costs)
        found += _times(before, after)
        new = (each for each in after.deprecations if each not in before.deprecations)
        found += [
            VersionDifference(Aspect.DEPRECATION, f"deprecated: {each}", is_worse=False)
            for each in new
        ]
        return ComparedFunction(name, before, after, tuple(found), not_compared)

    @property
    def is_worse(self) -> bool:
        """Whether the new version makes something worse."""
        return any(each.is_worse for each in self.differences)

    @property
    def fails_in_both(self) -> bool:
        """Whether it has an error under both versions."""
        return bool(self.before.error and self.after.error)

    @property
    def verdict(self) -> str:
        """`same`, `differs`, `fails`, or `?` for numbers that are not compared."""
        aspects = {each.aspect for each in self.differences}
        if self.after.error:
            return "fails in both" if self.before.error else "fails"
        if aspects & {Aspect.TYPES, Aspect.NUMBERS}:
            return "differs"
        return "?" if self.not_compared or self.before.error else "same"


def compared(before: ExaminedProject, after: ExaminedProject) -> list[ComparedFunction]:
    """Return the functions of both examinations, in order."""
    names = dict.fromkeys((*before.functions, *after.functions))
    nothing = ExaminedFunction(error="not examined")
    return [
        ComparedFunction.of(
            name, before.functions.get(name, nothing), after.functions.get(name, nothing)
        )
        for name in names
    ]


def _errors(before: str, after: str) -> Iterator[VersionDifference]:
    """Yield the difference of two errors, which are empty for functions without one."""
    if before == after:
        return
    if not after:
        yield VersionDifference(Aspect.ERROR, f"no longer: {before}", is_worse=False)
    else:
        words = f"another error: {after}" if before else after
        yield VersionDifference(Aspect.ERROR, words, is_worse=not before)


def _numbers(before: Sequence[Sampled], after: Sequence[Sampled]) -> Iterator[VersionDifference]:
    """Yield the first difference of each result, and the gradients that are missing now."""
    now, was = _by_name(after), _by_name(before)
    for name, samples in was.items():
        if name not in now:
            yield VersionDifference(Aspect.NUMBERS, f"{name} cannot be computed", is_worse=True)
            continue
        pairs = zip(samples, now.get(name, ()), strict=False)
        yield from islice((found for pair in pairs for found in _number(*pair)), 1)


def _by_name(results: Sequence[Sampled]) -> dict[str, list[Sampled]]:
    by_name: dict[str, list[Sampled]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    return by_name


def _number(before: Sampled, after: Sampled) -> Iterator[VersionDifference]:
    """Yield how a result differs, if it does: with optimizations alone, or also without them."""
    usual = _apart(before, after, _read(before.usual), _read(after.usual))
    if usual is None:
        return
    was, now = usual
    plain = _apart(before, after, _read(before.second), _read(after.second))
    how = "" if plain is not None else ", but not without optimizations"
    words = f"{before.name} differs{how}: {now:.6g} instead of {was:.6g}"
    yield VersionDifference(Aspect.NUMBERS, words, is_worse=True)


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


def _costs(before: ProgramFacts, after: ProgramFacts) -> Iterator[VersionDifference]:
    found = differences(before, after, dict.fromkeys(_SIZES, _PADDING))
    kernels = next((each.change for each in found if each.figure is Figure.KERNELS), "")
    for each in found:
        aspect = _ASPECTS.get(each.figure)
        repeats = each.change == kernels.replace(Figure.KERNELS.value, Figure.LAUNCHES.value)
        if aspect is not None and not repeats and UNKNOWN not in each.change:
            yield VersionDifference(aspect, each.words, each.is_worse)


def _times(before: ExaminedFunction, after: ExaminedFunction) -> Iterator[VersionDifference]:
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
            yield VersionDifference(aspect, words, is_worse=is_worse)
