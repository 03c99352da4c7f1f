"""A reduction: the file, the failure to keep, the limits, and what came of it."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight_repro.checks.base import Check
from jaxsight_repro.environment import ProgramEnvironment
from jaxsight_repro.failures import HANG, NoRepro, RunFailure
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.loading import LoadedRepro
from jaxsight_repro.running import run_file

Report = Callable[[dict[str, object]], None]


class CannotReduce(NoRepro):
    """The file cannot be reduced."""


class NotReproduced(CannotReduce):
    """A program does not fail as expected where candidates run."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is reduced, and how.

    Attributes:
        out: the file to write.
        jobs: the number of candidates that run at the same time.
        original: the failure of the file in a fresh process, if the check is its own.
        unset: undoes the file's settings, in a child in which those of a candidate shall decide.
    """

    loaded: LoadedRepro
    out: Path
    check: Check
    limits: ChildLimits
    jobs: int
    report: Report
    environment: ProgramEnvironment
    original: RunFailure | None
    journal: Journal
    unset: Callable[[], None]
    start: float = field(default_factory=time.monotonic)

    def is_expected(self, failure: RunFailure) -> bool:
        """Return whether a program fails as the file does; tracebacks may differ."""
        if self.original is None:
            return self.check.holds(failure)
        if failure.kind == self.original.kind == HANG:
            return True
        return failure.signature[:3] == self.original.signature[:3]


@dataclass(frozen=True, slots=True)
class Reduced:
    """The result of a reduction.

    Attributes:
        path: the reduced file.
        failure: how it fails in a fresh process.
        before: the number of equations, or of statements, of the original.
        after: that of the result.
        unit: `equations` or `statements`.
        tried: the number of candidates.
        seconds: how long the reduction took.
        minimal: whether no single equation or statement can be deleted.
        interrupted: whether the user ended it early.
        confidence: the fraction of runs that fail in this way; 1 unless the failure is flaky.
        others: files with other failures that turned up.
    """

    path: Path
    failure: RunFailure
    before: int
    after: int
    unit: str
    tried: int
    seconds: float
    minimal: bool
    interrupted: bool
    confidence: float
    others: tuple[Path, ...]


def fails(path: Path, limits: ChildLimits) -> RunFailure:
    """Run a file in a fresh process, and return how it failed."""
    return run_file(sys.executable, path, timeout=limits.seconds, memory=limits.memory).failure


class Journal:
    """Failures by the digests of candidates."""

    def __init__(self, folder: Path | None, title: str) -> None:
        """Open the journal in a folder; one of another reduction, by its title, is replaced."""
        self._known: dict[str, RunFailure] = {}
        self._file = None if folder is None else folder / "checks.jsonl"
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, ValueError):
            first, *lines = self._file.read_text(encoding="utf-8").split("\n")
            if json.loads(first) == title:
                for line in lines[:-1]:  # the last one is empty, or was being written
                    digest, record = json.loads(line)
                    self._known[digest] = RunFailure(**record)
        lines = [json.dumps(title) + "\n", *map(_line, self._known.items())]
        self._file.write_text("".join(lines), encoding="utf-8")

    def failure(self, digest: str) -> RunFailure | None:
        """Return the failure of a candidate, or None if it is unknown."""
        return self._known.get(digest)

    def add(self, digest: str, failure: RunFailure) -> None:
        """Remember a failure; it is on disk when this returns."""
        self._known[digest] = failure
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(_line((digest, failure)))


def _line(entry: tuple[str, RunFailure]) -> str:
    digest, failure = entry
    return json.dumps([digest, failure.record()]) + "\n"
