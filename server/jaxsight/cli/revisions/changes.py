"""Compare what functions compile to in a revision and now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.cli.revisions.sides import ProgramKey, ProgramSide
from jaxsight.features.findings.locked import LockableFunction
from jaxsight.locks.differences import FactDifference, Figure, differences
from jaxsight.locks.facts import ProgramFacts


class ChangeOutcome(Enum):
    """What became of a function, the worst first; the values are those of JSON."""

    FAILS = "fails"
    WORSE = "worse"
    INPUTS = "other inputs"
    BETTER = "better"
    CHANGED = "changed"
    FIXED = "no longer fails"
    NEW = "new"
    MOVED = "moved"
    GONE = "gone"
    UNKNOWN = "unknown"
    SAME = "same"

    @property
    def is_worse(self) -> bool:
        """Whether it is a reason to look at it before it is merged."""
        return self in (ChangeOutcome.FAILS, ChangeOutcome.WORSE)


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """A function on both sides."""

    key: ProgramKey
    outcome: ChangeOutcome
    before: LockableFunction | None
    after: LockableFunction | None
    differences: tuple[FactDifference, ...] = ()
    reason: str = ""
    """Why it fails or is not compared; what it was called before."""

    @property
    def line(self) -> int:
        """The line (from 1) of the cause, else of the function; 0 for one that has gone."""
        own = self.after.range.start.line + 1 if self.after is not None else 0
        return next((each.line for each in self.differences if each.line), own)

    @property
    def growth(self) -> float:
        """How many times as large the figure is now that has grown most."""
        before = self.before.facts if self.before is not None else None
        after = self.after.facts if self.after is not None else None
        if before is None or after is None:
            return 1.0
        pairs = zip(_amounts(before), _amounts(after), strict=True)
        return max((now + 1) / (was + 1) for was, now in pairs)


def _amounts(facts: ProgramFacts) -> tuple[int, ...]:
    constants = sum(each.bytes for each in facts.constants)
    sizes = (facts.temporaries, facts.traffic, facts.moved, constants)
    return (len(facts.kernels), facts.launches, *(max(size, 0) for size in sizes))


def changes(before: ProgramSide, after: ProgramSide) -> list[ProgramChange]:
    """Return all functions of both sides, the worst first."""
    gone = {
        (function.facts.program, target): (file, name, target)
        for (file, name, target), function in before.functions.items()
        if (file, name, target) not in after.functions and function.facts is not None
    }
    found: dict[ProgramKey, ProgramChange] = {}
    moved: set[ProgramKey] = set()
    for key, function in after.functions.items():
        was = before.functions.get(key)
        program = function.facts.program if function.facts is not None else ""
        origin = gone.get((program, key[2])) if was is None else None
        if was is None and key[0] in before.broken:
            why = f"its base cannot be read: {before.broken[key[0]]}"
            found[key] = ProgramChange(key, ChangeOutcome.UNKNOWN, was, function, (), why)
        elif origin is not None and origin not in moved:
            moved.add(origin)
            old = before.functions[origin]
            found[key] = ProgramChange(
                key, ChangeOutcome.MOVED, old, function, (), ":".join(origin[:2])
            )
        else:
            found[key] = _compared(key, was, function)
    for key, was in before.functions.items():
        if key not in found and key not in moved:
            broken = after.broken.get(key[0], "")
            outcome = ChangeOutcome.FAILS if broken else ChangeOutcome.GONE
            found[key] = ProgramChange(key, outcome, was, None, (), broken)
    ranks = list(ChangeOutcome)
    return sorted(
        found.values(), key=lambda each: (ranks.index(each.outcome), -each.growth, each.key)
    )


def _compared(
    key: ProgramKey, before: LockableFunction | None, after: LockableFunction
) -> ProgramChange:
    """Return how a function differs from itself in the revision."""
    if after.facts is None:
        is_known = before is not None and before.facts is None
        outcome = ChangeOutcome.UNKNOWN if is_known else ChangeOutcome.FAILS
        return ProgramChange(key, outcome, before, after, (), after.problem)
    if before is None:
        return ProgramChange(key, ChangeOutcome.NEW, None, after)
    if before.facts is None:
        return ProgramChange(key, ChangeOutcome.FIXED, before, after, (), before.problem)
    found = tuple(differences(before.facts, after.facts))
    if any(each.figure is Figure.INPUTS for each in found):
        outcome = ChangeOutcome.INPUTS
    elif any(each.is_worse for each in found):
        outcome = ChangeOutcome.WORSE
    elif found:
        outcome = ChangeOutcome.BETTER
    elif before.facts.program != after.facts.program:
        outcome = ChangeOutcome.CHANGED
    else:
        outcome = ChangeOutcome.SAME
    return ProgramChange(key, outcome, before, after, found)


def lines_of(change: ProgramChange) -> Iterator[str]:
    """Yield what differs, each in a clause, what explains the others first."""
    match change.outcome:
        case ChangeOutcome.FAILS | ChangeOutcome.UNKNOWN:
            yield change.reason
        case ChangeOutcome.FIXED:
            yield f"it failed before: {change.reason}"
        case ChangeOutcome.MOVED:
            yield f"it was {change.reason}"
        case ChangeOutcome.GONE:
            yield "it is gone, or has no known inputs any more"
        case ChangeOutcome.CHANGED:
            yield "another program with the same figures"
        case _:
            yield from (each.words for each in change.differences)
