"""A reduction: the file, the failure to keep, and the limits."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from jaxsight.repro.checks.base import Check
from jaxsight.repro.environment import Environment
from jaxsight.repro.failures import HANG, Failure
from jaxsight.repro.reducing.checker import Settings
from jaxsight.repro.reducing.children import Limits
from jaxsight.repro.reducing.journal import Journal
from jaxsight.repro.reducing.loading import Loaded
from jaxsight.repro.reducing.options import Options, Report
from jaxsight.repro.running import run_file


@dataclass(frozen=True, slots=True)
class Task:
    """What is reduced, and how."""

    loaded: Loaded
    out: Path
    check: Check
    limits: Limits
    options: Options
    report: Report
    environment: Environment
    original: Failure | None
    """The failure of the file in a fresh process, if the check is its own."""
    journal: Journal
    start: float

    def is_expected(self, failure: Failure) -> bool:
        """Return whether a program fails as the file does; tracebacks may differ."""
        if self.original is None:
            return self.check.holds(failure)
        if failure.kind == self.original.kind == HANG:
            return True
        return failure.signature[:3] == self.original.signature[:3]

    def validated(self, settings: Settings) -> Failure | None:
        """Run the result in a fresh process; return its failure if it is the expected one."""
        expected = settings.expected
        for _ in range(settings.repeats):
            failure = fails(self.out, self.limits)
            anywhere = Failure(failure.kind, failure.name, failure.message, expected.frame)
            if any(settings.check.same(each, expected) for each in (failure, anywhere)):
                return failure
        return None


def fails(path: Path, limits: Limits) -> Failure:
    """Run a file in a fresh process, and return how it failed."""
    return run_file(sys.executable, path, timeout=limits.seconds, memory=limits.memory).failure
