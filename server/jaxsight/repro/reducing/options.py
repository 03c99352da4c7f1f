"""Options, results and errors of a reduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxsight.repro.failures import Failure

Report = Callable[[dict[str, Any]], None]


class CannotReduce(Exception):
    """The file cannot be reduced; the text says why, and `help` what to do."""

    def __init__(self, words: str, help: str = "") -> None:
        super().__init__(words)
        self.help = help


class NotReproduced(CannotReduce):
    """A program does not fail as expected where candidates run."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `reduce`.

    Attributes:
        check: the failure to keep, as `--check` takes it; empty for the file's own.
        jobs: the number of candidates that run at the same time.
        timeout: seconds after which a candidate counts as a hang.
        memory: bytes that a candidate may use.
        state: the folder from which an interrupted reduction continues.
    """

    check: str = ""
    jobs: int = 2
    timeout: float = 60.0
    memory: int = 8 << 30
    state: Path | None = None


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
    failure: Failure
    before: int
    after: int
    unit: str
    tried: int
    seconds: float
    minimal: bool
    interrupted: bool
    confidence: float = 1.0
    others: tuple[Path, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "event": "done",
            "path": str(self.path),
            "failure": self.failure.record(),
            "before": self.before,
            "after": self.after,
            "unit": self.unit,
            "tried": self.tried,
            "seconds": round(self.seconds, 2),
            "minimal": self.minimal,
            "interrupted": self.interrupted,
            "confidence": self.confidence,
            "others": [str(path) for path in self.others],
        }
