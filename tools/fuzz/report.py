"""What a fuzzer found: counts, figures, and failures with their seeds and smallest inputs."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import TypeVar

T = TypeVar("T", str, bytes)
E = TypeVar("E")

_TRIES = 150
"""How often a smaller input is tried."""


@dataclass(frozen=True)
class Failure:
    """One input that broke what must hold."""

    seed: str
    problem: str
    input: str


@dataclass
class Report:
    """What came of a run."""

    cases: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    table: str = ""

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def __str__(self) -> str:
        counts = ", ".join(f"{what} {number}" for what, number in sorted(self.counts.items()))
        lines = [
            f"{self.cases} cases, {len(self.failures)} failures" + (f" ({counts})" * bool(counts))
        ]
        for failure in self.failures:
            lines += [f"seed {failure.seed}: {failure.problem}", *_indented(failure.input)]
        return "\n".join([*lines, self.table] if self.table else lines)


def _indented(text: str) -> list[str]:
    lines = text.splitlines()
    rest = [f"    … {len(lines) - 60} more lines"] if len(lines) > 60 else []
    return [f"    {line[:400]}" for line in lines[:60]] + rest


def chance(seed: str) -> Random:
    """The source of all that a case is drawn from."""
    return Random(seed)


class Overdue(Exception):
    """What was tried did not end in time."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `Overdue` in the block when it takes so long; where there are no alarms, the suite's
    own limit must do."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise Overdue(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pure(
    draw: Callable[[Random], T],
    check: Callable[[T], None],
    count: int,
    seed: int,
    seconds: float = 20.0,
) -> Report:
    """Draw inputs and check what must hold of each: `check` raises where it does not."""
    report = Report()
    for number in range(count):
        name = f"{seed}:{number}"
        text = draw(chance(name))
        report.cases += 1
        problem = _problem(check, text, seconds)
        if problem is not None:
            kind = problem[0]

            def still(smaller: T, kind: str = kind) -> bool:
                found = _problem(check, smaller, seconds)
                return found is not None and found[0] == kind

            smallest = shrunk(text, still)
            words = _problem(check, smallest, seconds) or problem
            report.failures.append(Failure(name, words[1], repr(smallest)))
    return report


def _problem(check: Callable[[T], None], text: T, seconds: float) -> tuple[str, str] | None:
    """What goes wrong: its kind and its place, and all words."""
    try:
        with deadline(seconds):
            check(text)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what was looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = type(error).__name__
        where = "" if isinstance(error, Overdue) else f"{last.filename}:{last.lineno}"
        return f"{kind} {where}", f"{kind} at {last.filename}:{last.lineno}: {str(error)[:500]}"
    return None


def shrunk(text: T, fails: Callable[[T], bool]) -> T:
    """A smaller input that fails as `text` does."""
    kept = list(range(len(text)))

    def of(places: Sequence[int]) -> T:
        return (
            bytes(text[at] for at in places)
            if isinstance(text, bytes)
            else "".join(text[at] for at in places)
        )

    return of(smaller(kept, lambda places: fails(of(places))))


def smaller(
    items: Sequence[E], fails: Callable[[Sequence[E]], bool], tries: int = _TRIES
) -> list[E]:
    """Fewer of `items` that still fail: pieces are left out while that is so."""
    kept = list(items)
    size = max(len(kept) // 2, 1)
    while size:
        at = 0
        while at < len(kept) and tries:
            without = kept[:at] + kept[at + size :]
            tries -= 1
            if fails(without):
                kept = without
            else:
                at += size
        size //= 2
    return kept
