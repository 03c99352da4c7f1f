"""Compare the facts of a function with earlier ones, and say why they differ, at which line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from typing import TypeVar

from jaxsight.locks.facts import KernelFact, ProgramFacts
from jaxsight.locks.notation import NUMBERS, Tolerance
from jaxsight.text import units

_UNROLLED = (1.5, 20)
"""Equations are reported above this factor plus so many: fewer are an edit, no unrolled loop."""

_WIDER = 2
"""Arrays of a dtype that is not the narrowest float are reported above this factor."""
_WEAK = frozenset({"output", "shared result", "XLA's choice"})
"""Fusion boundaries that follow from others."""

_T = TypeVar("_T")


class Figure(Enum):
    """What differs, in the order in which one explains the others.

    A new dtype doubles memory, a constant is an argument less, an unrolled loop has other kernels.
    The values are the keys of the notation.
    """

    INPUTS = "inputs"
    RESULTS = "results"
    DTYPES = "dtypes"
    DEVICES = "devices"
    COLLECTIVES = "collectives"
    CONSTANTS = "constants"
    CALLBACKS = "callbacks"
    EQUATIONS = "equations"
    LOOPS = "loops"
    KERNELS = "kernels"
    LAUNCHES = "launches"
    DONATIONS = "unused-donations"
    HOST = "host"
    MOVED = "moved"
    TEMPORARIES = "temp"
    TRAFFIC = "traffic"
    OUTPUTS = "out"
    ARGUMENTS = "args"


_WORDS = {
    Figure.DONATIONS: "donated inputs that are not reused",
    Figure.HOST: "host transfers",
    Figure.OUTPUTS: "results",
    Figure.ARGUMENTS: "arguments",
}
_RANK = {figure: rank for rank, figure in enumerate(Figure)}


@dataclass(frozen=True, slots=True)
class FactDifference:
    """A figure that differs, and why."""

    figure: Figure
    change: str
    """`kernels 2 → 3`"""
    is_worse: bool
    cause: str = ""
    """`kernel split: reduction`; empty if nothing is known of it."""
    line: int = 0
    """The line (from 1) of the cause; 0 if unknown."""

    @property
    def words(self) -> str:
        """The change with its cause: `kernels 2 → 3; kernel split: reduction at line 12`."""
        at = f" at line {self.line}" if self.line else ""
        return "; ".join(filter(None, (self.change, self.cause))) + at


def differences(
    before: ProgramFacts, after: ProgramFacts, tolerances: Mapping[str, Tolerance] | None = None
) -> list[FactDifference]:
    """Return how facts differ from earlier ones, what explains the others first.

    Args:
        before: the earlier facts, whose lines need not be known.
        after: the facts now.
        tolerances: how far numbers may be apart, by the key of the notation.
    """
    if before == after:
        return []
    return sorted(_Comparison(before, after, tolerances or {}).found(), key=_order)


def _order(difference: FactDifference) -> tuple[bool, bool, bool, int]:
    """Return what sorts differences: those with a cause at a line explain the others."""
    figure = difference.figure
    is_placed = difference.is_worse and difference.line > 0
    return figure is not Figure.INPUTS, not is_placed, not difference.is_worse, _RANK[figure]


@dataclass(frozen=True, slots=True)
class _Comparison:
    before: ProgramFacts
    after: ProgramFacts
    tolerances: Mapping[str, Tolerance]

    def found(self) -> Iterator[FactDifference]:
        """Yield all differences."""
        yield from self.types()
        yield from self.collectives()
        yield from self.constants()
        yield from self.loops()
        yield from self.kernels()
        yield from self.numbers()

    def _tolerates(self, figure: Figure, before: int, after: int) -> bool:
        tolerance = self.tolerances.get(figure.value)
        return before == after or (tolerance is not None and tolerance.allows(before, after))

    def types(self) -> Iterator[FactDifference]:
        """Yield what differs of types: inputs, results, dtypes."""
        before, after = self.before, self.after
        if before.inputs != after.inputs:
            words = f"inputs are {after.inputs or 'none'} instead of {before.inputs or 'none'}"
            yield FactDifference(Figure.INPUTS, words, is_worse=False)
        if before.results != after.results:
            words = f"returns {after.results} instead of {before.results}"
            yield FactDifference(Figure.RESULTS, words, is_worse=True)
        known = {dtype.name: dtype for dtype in before.dtypes}
        narrow = min((dtype.bits for dtype in before.dtypes if dtype.is_float), default=0)
        for dtype in after.dtypes:
            if (old := known.pop(dtype.name, None)) is None:
                change = f"new dtype {dtype.name}"
                yield FactDifference(Figure.DTYPES, change, is_worse=True, line=dtype.first)
            elif dtype.is_float and dtype.bits > narrow and dtype.bytes > _WIDER * old.bytes:
                change = f"{dtype.name} arrays up to {_apart(old.bytes, dtype.bytes, units.size)}"
                yield FactDifference(Figure.DTYPES, change, is_worse=True, line=dtype.line)
        if known:
            change = f"no {' and no '.join(known)} any more"
            yield FactDifference(Figure.DTYPES, change, is_worse=False)

    def collectives(self) -> Iterator[FactDifference]:
        """Yield what differs of collectives."""
        before, after = self.before.collectives, self.after.collectives
        if self._tolerates(Figure.COLLECTIVES, len(before), len(after)) and (
            self.tolerances.get("collectives") or not _new(before, after)
        ):
            return
        change = f"collectives {len(before)} → {len(after)}"
        for fact in _new(before, after):
            over = f" over {', '.join(fact.axes)}" if fact.axes else ""
            times = f", {fact.runs} times" if fact.runs != 1 else ""
            cause = f"new {fact.kind}, {units.size(fact.bytes)}{over}{times}"
            yield FactDifference(Figure.COLLECTIVES, change, True, cause, fact.line)
            return
        gone = _new(after, before)
        cause = f"no {gone[0].kind} of {units.size(gone[0].bytes)} any more" if gone else ""
        yield FactDifference(Figure.COLLECTIVES, change, False, cause)

    def constants(self) -> Iterator[FactDifference]:
        """Yield what differs of constants."""
        was, now = (sum(each.bytes for each in of.constants) for of in (self.before, self.after))
        if self._tolerates(Figure.CONSTANTS, was, now):
            return
        new = sorted(_new(self.before.constants, self.after.constants), key=lambda it: -it.bytes)
        change = f"constants {_apart(was, now, units.size)}"
        cause, line = "", 0
        if new and now > was:
            how = "folded" if new[0].is_folded else "captured"
            line = new[0].line
            cause = f"constant of {units.size(new[0].bytes)} {how}"
        yield FactDifference(Figure.CONSTANTS, change, now > was, cause, line)

    def loops(self) -> Iterator[FactDifference]:
        """Yield what differs of loops, and equations of unrolled ones."""
        before, after = self.before, self.after
        factor, least = _UNROLLED
        was, now = before.equations, after.equations
        grown = (
            was and now > was * factor + least and not self._tolerates(Figure.EQUATIONS, was, now)
        )
        if grown:
            line, number = after.densest
            cause = f"{number} of them" if line else ""
            yield FactDifference(Figure.EQUATIONS, f"equations {was} → {now}", True, cause, line)
        new, gone = _new(before.loops, after.loops), _new(after.loops, before.loops)
        if not (new or gone) or "loops" in self.tolerances:
            return
        change = f"loops {len(before.loops)} → {len(after.loops)}"
        if new:
            times = "an unknown number of" if new[0].trips is None else str(new[0].trips)
            cause = f"loop of {times} iterations"
            yield FactDifference(Figure.LOOPS, change, True, cause, new[0].line)
        else:
            times = "unknown" if gone[0].trips is None else str(gone[0].trips)
            cause = f"no loop of {times} iterations any more"
            yield FactDifference(Figure.LOOPS, change, is_worse=False, cause=cause)

    def kernels(self) -> Iterator[FactDifference]:
        """Yield what differs of the number of kernels."""
        was, now = len(self.before.kernels), len(self.after.kernels)
        if self._tolerates(Figure.KERNELS, was, now):
            return
        added = [fact for fact, old in self._aligned if old is None]
        cause, line = "", 0
        if now > was and added:
            first = next((fact for fact in added if fact.reason not in _WEAK), added[0])
            line = first.line
            split = "kernel split" if len(added) == 1 else f"one of {len(added)} new kernels"
            cause = f"{split}: {first.reason}"
        yield FactDifference(Figure.KERNELS, f"kernels {was} → {now}", now > was, cause, line)

    @property
    def _aligned(self) -> list[tuple[KernelFact, KernelFact | None]]:
        """The kernels now, each with the earlier one that it is, if there is one."""
        before, after = self.before.kernels, self.after.kernels
        aligned: dict[int, KernelFact] = {}
        rest: dict[int, list[int]] = {}
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for tag, first, last, at, end in matcher.get_opcodes():
            if tag == "equal":
                aligned.update(zip(range(at, end), before[first:last], strict=True))
            elif tag == "replace":
                rest |= {index: list(range(first, last)) for index in range(at, end)}
        # Within what was replaced: kernels with the same fusion boundary, whatever they write.
        taken: set[int] = set()
        for index, candidates in rest.items():
            for candidate in candidates:
                if candidate not in taken and before[candidate].reason == after[index].reason:
                    taken.add(candidate)
                    aligned[index] = before[candidate]
                    break
        return [(fact, aligned.get(index)) for index, fact in enumerate(after)]

    def numbers(self) -> Iterator[FactDifference]:
        """Yield what differs of other figures."""
        for each in NUMBERS:
            figure = Figure(each.key)
            was, now = getattr(self.before, each.name), getattr(self.after, each.name)
            if figure is Figure.EQUATIONS or self._tolerates(figure, was, now):
                continue
            name = _WORDS.get(figure, each.key)
            write: Callable[[int], str] = units.size if each.is_bytes else str
            change = f"{name} {_apart(was, now, write)}"
            is_worse = now > was >= 0
            line, cause = self.writer(figure, each.name) if is_worse and each.is_bytes else (0, "")
            yield FactDifference(figure, change, is_worse, cause, line)

    def writer(self, figure: Figure, name: str) -> tuple[int, str]:
        """Return the line of the kernel that writes or keeps more than earlier, with words."""
        if figure not in (Figure.TEMPORARIES, Figure.TRAFFIC):
            return 0, ""
        is_kept = figure is Figure.TEMPORARIES
        more = getattr(self.after, name) - getattr(self.before, name)
        grown = []
        for fact, old in self._aligned:
            # What an earlier kernel of a lock kept is not known: what it wrote is.
            size = fact.bytes - (old.bytes if old is not None else 0)
            if fact.line and size > 0 and (fact.kept or not is_kept):
                grown.append((size <= more, size, -fact.line))
        if not grown:
            return 0, ""
        is_part, size, line = max(grown)
        verb = "kept" if is_kept else "written"
        return -line, f"{units.size(size)} more {verb}" if is_part else ""


def _new(before: Sequence[_T], after: Sequence[_T]) -> list[_T]:
    """Return the facts now that were not there earlier; of equal ones, those that are too many."""
    left = Counter(before)
    new = []
    for fact in after:
        if left[fact] > 0:
            left[fact] -= 1
        else:
            new.append(fact)
    return new


def _apart(was: int, now: int, write: Callable[[int], str]) -> str:
    """Return `512 KiB → 1 MiB`; numbers that would read alike have all digits."""
    texts = write(was), write(now)
    if texts[0] == texts[1]:
        texts = f"{was:,}", f"{now:,}"
    return f"{texts[0]} → {texts[1]}"
