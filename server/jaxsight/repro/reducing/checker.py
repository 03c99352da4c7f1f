"""Decides which candidates are interesting: runs them in children, and remembers the results.

What is accepted depends only on the order of the candidates, not on which child ends first.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxsight.repro.checks.base import Check
from jaxsight.repro.failures import EXCEPTION, FINISHED, Failure
from jaxsight.repro.reducing import children
from jaxsight.repro.reducing.candidates import Candidate, Digests, cost, is_finite
from jaxsight.repro.reducing.children import Child, Limits
from jaxsight.repro.reducing.evaluation import arrays_of, function_of
from jaxsight.repro.reducing.journal import Journal

_MOST_OTHERS = 8
"""The number of other failures that are kept."""

Report = Callable[[dict[str, Any]], None]


def observed(candidate: Candidate, check: Check, jitted: bool) -> Failure:
    """Run the demonstration of a check on a candidate, in this process."""
    namespace = {
        "jax": jax,
        "jnp": jax.numpy,
        "np": np,
        "main": function_of(candidate),
        "inputs": lambda: arrays_of(candidate.arguments),
    }
    return raised(lambda: exec("\n".join(check.lines(jitted)), namespace))


def raised(action: Callable[[], object]) -> Failure:
    """Return how a call failed."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - whatever a program raises
        return children.failure_of(error)
    return Failure(FINISHED)


@dataclass(slots=True)
class Settings:
    """How candidates are run.

    A candidate is interesting if at least `needed` of `repeats` runs fail as expected.
    """

    check: Check
    expected: Failure
    limits: Limits
    jobs: int
    jitted: bool
    repeats: int = 1
    needed: int = 1
    finite: bool = False
    """Whether arguments must be finite, as those of the original are."""


@dataclass(slots=True)
class Checker:
    """Checks candidates, in parallel."""

    settings: Settings
    journal: Journal
    report: Report
    others: dict[tuple[str, ...], tuple[Failure, Candidate]] = field(default_factory=dict)
    tried: int = 0
    started: float = field(default_factory=time.monotonic)
    best: Candidate | None = None
    on_accept: Callable[[Candidate], None] | None = None
    _digests: Digests = field(default_factory=Digests)
    _reported: float = 0.0

    def first(self, candidates: Iterable[Candidate | None]) -> Candidate | None:
        """Return the first interesting candidate, or None; the best so far is replaced by it."""
        window: deque[tuple[Candidate, str, list[Child]]] = deque()
        remaining = (
            candidate
            for candidate in candidates
            if candidate is not None and (not self.settings.finite or is_finite(candidate))
        )
        try:
            while True:
                self._fill(window, remaining)
                if not window:
                    return None
                candidate, digest, running = window.popleft()
                others = [child for _, _, group in window for child in group]
                if self._interesting(candidate, digest, running, others):
                    self.best = candidate
                    self.progress(force=True)
                    if self.on_accept is not None:
                        self.on_accept(candidate)
                    return candidate
        finally:
            for _, _, group in window:
                for child in group:
                    child.kill()

    def _fill(
        self,
        window: deque[tuple[Candidate, str, list[Child]]],
        remaining: Iterator[Candidate],
    ) -> None:
        """Start the next candidates, as many as there are jobs."""
        while len(window) < self.settings.jobs:
            candidate = next(remaining, None)
            if candidate is None:
                return
            digest = self._digests.of(candidate)
            known = self.journal.failure(digest)
            group = [] if known is not None else [self._start(candidate)]
            window.append((candidate, digest, group))

    def _start(self, candidate: Candidate) -> Child:
        settings = self.settings

        def task() -> bytes:
            failure = observed(candidate, settings.check, settings.jitted)
            return json.dumps(failure.record()).encode()

        return children.start(task, settings.limits)

    def _interesting(
        self, candidate: Candidate, digest: str, running: list[Child], others: list[Child]
    ) -> bool:
        """Return whether a candidate fails as expected; keep other failures aside."""
        failure = self.journal.failure(digest)
        if failure is None:
            try:
                failure = self._decide(candidate, running, others)
            finally:
                for child in running:
                    child.kill()
            self.journal.add(digest, failure)
        self.tried += 1
        self.progress()
        settings = self.settings
        if settings.check.same(failure, settings.expected):
            return True
        if failure.kind != FINISHED:
            key = failure.signature
            if key not in self.others and len(self.others) < _MOST_OTHERS:
                self.others[key] = (failure, candidate)
        return False

    def _decide(self, candidate: Candidate, running: list[Child], others: list[Child]) -> Failure:
        """Run a candidate until enough runs failed as expected, or too many did not."""
        settings = self.settings
        hits = 0
        last = Failure(FINISHED)
        for attempt in range(settings.repeats):
            if attempt:
                running.append(self._start(candidate))
            child = running[-1]
            failure = ended(child, children.wait(child, others))
            if settings.check.same(failure, settings.expected):
                hits += 1
                last = failure
                if hits >= settings.needed:
                    return failure
            elif hits == 0:
                last = failure
            if hits + settings.repeats - attempt - 1 < settings.needed:
                break
        return Failure(FINISHED) if hits else last

    @property
    def rate(self) -> float:
        """Candidates per second."""
        return self.tried / max(time.monotonic() - self.started, 1e-9)

    def runs(self, candidate: Candidate, count: int) -> list[Failure]:
        """Run a candidate several times, whatever is remembered."""
        found: list[Failure] = []
        while len(found) < count:
            group: list[Child] = []
            try:
                wanted = min(self.settings.jobs, count - len(found))
                group += [self._start(candidate) for _ in range(wanted)]
                found += [ended(child, children.wait(child, group)) for child in group]
            finally:
                for child in group:
                    child.kill()
        return found

    def progress(self, *, force: bool = False) -> None:
        """Report the number of equations and of candidates, at most ten times a second."""
        now = time.monotonic()
        if self.best is None or (now - self._reported < 0.1 and not force):
            return
        self._reported = now
        self.report(
            {
                "event": "progress",
                "equations": self.best.count,
                "cost": list(cost(self.best)),
                "tried": self.tried,
                "rate": round(self.rate, 1),
            }
        )


def ended(child: Child, ending: Failure) -> Failure:
    """Return the failure that a child observed, or how it ended itself."""
    if ending.kind != FINISHED:
        return ending
    try:
        return Failure.of_record(json.loads(bytes(child.output)))
    except ValueError:
        return Failure(EXCEPTION, "SystemExit", "exit status 0")
