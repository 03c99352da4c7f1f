"""Decides which candidates are interesting: runs them in children, and remembers the results.

What is accepted depends only on the order of the candidates, not on which child ends first.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from jaxsight.repro.checks.base import Check
from jaxsight.repro.failures import EXCEPTION, FINISHED, Failure, failure_of
from jaxsight.repro.reducing import children
from jaxsight.repro.reducing.children import Child, Limits
from jaxsight.repro.reducing.journal import Journal

_MOST_OTHERS = 8
"""The number of other failures that are kept."""

C = TypeVar("C")
Report = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Settings:
    """How candidates are run.

    A candidate is interesting if at least `needed` of `repeats` runs fail as expected.
    """

    check: Check
    expected: Failure
    limits: Limits
    jobs: int
    repeats: int = 1
    needed: int = 1


@dataclass(frozen=True, slots=True)
class Kind(Generic[C]):
    """What the checker needs to know about candidates.

    Attributes:
        unit: `equations` or `statements`.
        observe: runs a candidate in this process, and returns how it failed.
        digest: identifies a candidate in every process.
        count: returns how many units a candidate has.
        admits: whether a candidate is run at all.
    """

    unit: str
    observe: Callable[[C], Failure]
    digest: Callable[[C], str]
    count: Callable[[C], int]
    admits: Callable[[C], bool] = lambda candidate: True


@dataclass(slots=True)
class Checker(Generic[C]):
    """Checks candidates, in parallel.

    Attributes:
        accepted: the interesting candidates so far, of which the first is the original.
        others: other failures, each with a candidate that fails so.
        tried: the number of candidates that were decided.
    """

    settings: Settings
    kind: Kind[C]
    journal: Journal
    report: Report
    accepted: list[C] = field(default_factory=list)
    others: dict[tuple[str, ...], tuple[Failure, C]] = field(default_factory=dict)
    tried: int = 0
    _started: float = field(default_factory=time.monotonic)
    _reported: float = 0.0

    def first(self, candidates: Iterable[C | None]) -> C | None:
        """Return the first interesting candidate, which is then accepted; None if none is."""
        window: deque[tuple[C, str, list[Child]]] = deque()
        remaining = (
            candidate
            for candidate in candidates
            if candidate is not None and self.kind.admits(candidate)
        )
        try:
            while True:
                self._fill(window, remaining)
                if not window:
                    return None
                candidate, digest, running = window[0]
                others = [child for _, _, group in window for child in group[-1:]]
                if self._interesting(candidate, digest, running, others):
                    self.accepted.append(candidate)
                    self.progress(force=True)
                    return candidate
                window.popleft()
        finally:
            for _, _, group in window:
                for child in group:
                    child.kill()

    def _fill(self, window: deque[tuple[C, str, list[Child]]], remaining: Iterator[C]) -> None:
        """Start the next candidates, as many as there are jobs."""
        while len(window) < self.settings.jobs:
            candidate = next(remaining, None)
            if candidate is None:
                return
            digest = self.kind.digest(candidate)
            known = self.journal.failure(digest)
            window.append(
                (candidate, digest, [] if known is not None else [self._start(candidate)])
            )

    def _start(self, candidate: C) -> Child:
        def task() -> bytes:
            return json.dumps(self.kind.observe(candidate).record()).encode()

        return children.start(task, self.settings.limits)

    def _interesting(
        self, candidate: C, digest: str, running: list[Child], others: list[Child]
    ) -> bool:
        """Return whether a candidate fails as expected; keep other failures aside."""
        failure = self.journal.failure(digest)
        if failure is None:
            if not running:
                running.append(self._start(candidate))
            failure = self._decide(candidate, running, others)
            self.journal.add(digest, failure)
        self.tried += 1
        self.progress()
        if self.settings.check.same(failure, self.settings.expected):
            return True
        if failure.kind != FINISHED:
            key = failure.signature
            if key not in self.others and len(self.others) < _MOST_OTHERS:
                self.others[key] = (failure, candidate)
        return False

    def _decide(self, candidate: C, running: list[Child], others: list[Child]) -> Failure:
        """Run a candidate until enough runs failed as expected, or too many did not."""
        settings = self.settings
        hits = 0
        last = Failure(FINISHED)
        for attempt in range(settings.repeats):
            if attempt:
                running.append(self._start(candidate))
            failure = _ended(running[-1], children.wait(running[-1], others))
            if settings.check.same(failure, settings.expected):
                hits += 1
                if hits >= settings.needed:
                    return failure
            elif not hits:
                last = failure
            if hits + settings.repeats - attempt - 1 < settings.needed:
                break
        return Failure(FINISHED) if hits else last

    def runs(self, candidate: C, count: int) -> list[Failure]:
        """Run a candidate several times, whatever is remembered; return how each run failed."""
        failures: list[Failure] = []
        while len(failures) < count:
            group: list[Child] = []
            try:
                jobs = min(self.settings.jobs, count - len(failures))
                group.extend(self._start(candidate) for _ in range(jobs))
                failures += [_ended(child, children.wait(child, group)) for child in group]
            finally:
                for child in group:
                    child.kill()
        return failures

    @property
    def rate(self) -> float:
        """Candidates per second."""
        return self.tried / max(time.monotonic() - self._started, 1e-9)

    def progress(self, *, force: bool = False) -> None:
        """Report the size and the number of candidates, at most ten times a second."""
        now = time.monotonic()
        if not force and now - self._reported < 0.1:
            return
        self._reported = now
        count = self.kind.count(self.accepted[-1])
        rate = round(self.rate, 1)
        self.report({"event": "progress", self.kind.unit: count, "tried": self.tried, "rate": rate})


def raised(action: Callable[[], object]) -> Failure:
    """Return how a call failed."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - whatever a program raises
        return failure_of(error)
    return Failure(FINISHED)


def _ended(child: Child, ending: Failure) -> Failure:
    """Return the failure that a child observed, or how it ended itself."""
    if ending.kind != FINISHED:
        return ending
    try:
        return Failure.of_record(json.loads(bytes(child.output)))
    except ValueError:
        return Failure(EXCEPTION, "SystemExit", "exit status 0")
