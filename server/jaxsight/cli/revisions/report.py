"""Write what functions compile to in a revision and now: a table, a comment, or JSON.

Before that, what functions compile to in the revision and now is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from jaxsight.cli.output.printing import MOST_ROWS, Printer, print_rows
from jaxsight.cli.revisions.sides import ProgramKey, ProgramSide
from jaxsight.features.findings.locked import LockableFunction
from jaxsight.locks.differences import FactDifference, Figure, differences
from jaxsight.locks.facts import ProgramFacts
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.markdown import commented, span, table_cell


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


_MARKS = {
    ChangeOutcome.FAILS: "❌",
    ChangeOutcome.WORSE: "❌",
    ChangeOutcome.BETTER: "✅",
    ChangeOutcome.FIXED: "✅",
    ChangeOutcome.INPUTS: "❔",
    ChangeOutcome.UNKNOWN: "❔",
}
_QUIET = frozenset(
    {ChangeOutcome.SAME, ChangeOutcome.CHANGED, ChangeOutcome.MOVED, ChangeOutcome.NEW}
)
"""Without `--verbose`, these are only counted: nothing got better or worse."""
_MOST_FUNCTIONS = 50
"""Functions in a comment, a choice: GitHub takes 65,536 characters, people read less."""
_REASONS = 3
"""Differences in a cell of a comment, a choice: the first ones explain the others."""

_FIGURES: dict[str, Callable[[ProgramFacts], str]] = {
    "kernels": lambda facts: str(len(facts.kernels)),
    "launches": lambda facts: str(facts.launches),
    "temp": lambda facts: units.size(facts.temporaries) if facts.temporaries >= 0 else "?",
    "traffic": lambda facts: units.size(facts.traffic),
    "moved": lambda facts: units.size(facts.moved),
}
_RECORDED: dict[str, Callable[[ProgramFacts], object]] = {
    "kernel_count": lambda facts: len(facts.kernels),
    "launch_count": attrgetter("launches"),
    "temp_bytes": lambda facts: facts.temporaries if facts.temporaries >= 0 else None,
    "argument_bytes": attrgetter("arguments"),
    "output_bytes": attrgetter("outputs"),
    "traffic_bytes": attrgetter("traffic"),
    "communicated_bytes": attrgetter("moved"),
    "collectives": lambda facts: list(map(str, facts.collectives)),
    "constants": lambda facts: list(map(str, facts.constants)),
    "dtypes": lambda facts: list(map(str, facts.dtypes)),
    "inputs": attrgetter("inputs"),
    "results": attrgetter("results"),
    "program": attrgetter("program"),
}
"""The keys of a compiled function in JSON."""


@dataclass(frozen=True, slots=True)
class RevisionReport:
    """The comparison of a whole project with a revision."""

    revision: str
    """As the user wrote it."""
    commit: str
    changes: Sequence[ProgramChange]

    @property
    def worse(self) -> int:
        """The number of functions that got worse."""
        return sum(each.outcome.is_worse for each in self.changes)

    @property
    def summary(self) -> str:
        """Return `3 of 14 functions differ from main (1a2b3c4d5e), 1 for the worse`."""
        moved = sum(each.outcome is ChangeOutcome.MOVED for each in self.changes)
        same = sum(each.outcome is ChangeOutcome.SAME for each in self.changes)
        differ = len(self.changes) - moved - same
        functions = f"{differ} of {len(self.changes)} functions"
        verb = "differs" if differ == 1 else "differ"
        where = f"{self.revision} ({self.commit[:10]})"
        worse = f", {self.worse} for the worse" if self.worse else ""
        elsewhere = f", {moved} moved" if moved else ""
        return f"{functions} {verb} from {where}{worse}{elsewhere}"

    @property
    def compiled_for(self) -> str:
        """Return `compiled for h100 with JAX 0.12.0`."""
        sides = (side for each in self.changes for side in (each.after, each.before))
        sections = {str(side.section): None for side in sides if side is not None}
        return f"compiled for {'; '.join(sections)}" if sections else ""

    def listed(self, *, verbose: bool) -> list[ProgramChange]:
        """Return the functions of the table."""
        return [each for each in self.changes if verbose or each.outcome not in _QUIET]

    def print(self, printer: Printer, *, verbose: bool) -> None:
        """Print a row for each function that got better or worse, or for all; then the causes."""
        shown = self.listed(verbose=verbose)
        if shown:
            rows = [
                (one_line(":".join(each.key[:2])), each.outcome.value, *_figures(each))
                for each in shown[:MOST_ROWS]
            ]
            columns = ("function", "", *_FIGURES)
            print_rows(printer, columns, rows, "ll" + "r" * len(_FIGURES), len(shown))
            printer.print()
        for each in shown[:MOST_ROWS]:
            for words in lines_of(each):
                printer.print(one_line(f"{_place(each)}: {words}"))
        printer.print_line(self.summary, "bold")
        if self.compiled_for:
            printer.print_line(self.compiled_for, "dim")

    def as_markdown(self) -> str:
        """Return a heading and a table, for a comment on a pull request."""
        shown = self.listed(verbose=False)
        mark = "❌" if self.worse else "✅"
        lines = [f"### {mark} jaxsight diff: {commented(self.summary)}", ""]
        if shown:
            figures = [dict(zip(_FIGURES, _figures(each), strict=True)) for each in shown]
            columns = [name for name in _FIGURES if any(row[name] for row in figures)]
            sides = ["---", "---", *("---:" for _ in columns), "---"]
            lines += [
                f"| {' | '.join(('', 'function', *columns, 'why'))} |",
                f"|{'|'.join(sides)}|",
            ]
            for each, row in zip(shown[:_MOST_FUNCTIONS], figures, strict=False):
                words = [commented(text) for text in lines_of(each)]
                more = [f"and {len(words) - _REASONS} more"] if len(words) > _REASONS else []
                why = "<br>".join([*words[:_REASONS], *more])
                mark = _MARKS.get(each.outcome, "")
                cells = (mark, span(_place(each)), *(row[name] for name in columns), why)
                lines.append(f"| {' | '.join(map(table_cell, cells))} |")
            if len(shown) > _MOST_FUNCTIONS:
                lines.append(f"| | and {len(shown) - _MOST_FUNCTIONS} more |")
            lines.append("")
        lines.append(commented(self.compiled_for))
        return "\n".join(lines) + "\n"

    def record(self) -> dict[str, object]:
        """Return the object that `--json` prints; sizes are in bytes."""
        return {
            "revision": self.revision,
            "commit": self.commit,
            "worse": self.worse,
            "functions": [
                {
                    "filename": each.key[0],
                    "function": each.key[1],
                    "target": each.key[2],
                    "line": each.line or None,
                    "outcome": each.outcome.value,
                    "reason": each.reason or None,
                    "differences": [
                        {
                            "figure": found.figure.value,
                            "change": found.change,
                            "cause": found.cause or None,
                            "line": found.line or None,
                            "worse": found.is_worse,
                        }
                        for found in each.differences
                    ],
                    "before": _side(each.before),
                    "after": _side(each.after),
                }
                for each in self.changes
            ],
        }


def _place(change: ProgramChange) -> str:
    """Return `model.py:12 loss`, with the line of the cause."""
    file, name, _ = change.key
    return one_line(f"{file}:{change.line} {name}" if change.line else f"{file} {name}")


def _figures(change: ProgramChange) -> Iterator[str]:
    """Yield the texts of the columns: figures that differ."""
    sides = [side.facts if side is not None else None for side in (change.before, change.after)]
    for figure in _FIGURES.values():
        was, now = ("–" if facts is None else figure(facts) for facts in sides)
        is_moved = change.outcome is ChangeOutcome.MOVED
        yield "" if was == now or is_moved else f"{was} → {now}"


def _side(function: LockableFunction | None) -> dict[str, object] | None:
    if function is None:
        return None
    facts = function.facts
    figures = {} if facts is None else {name: read(facts) for name, read in _RECORDED.items()}
    return {"jax": function.section.jax, "problem": function.problem or None, **figures}
