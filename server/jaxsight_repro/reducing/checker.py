"""Decides which candidates are interesting: runs them in children, and remembers the results.

What is accepted depends only on the order of the candidates, not on which child ends first.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from jaxsight_repro.checks.base import Check, Script
from jaxsight_repro.emit.repro_file import CannotEmit
from jaxsight_repro.failures import EXCEPTION, FINISHED, HANG, RunFailure
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.children import Child
from jaxsight_repro.reducing.task import CannotReduce, NotReproduced, Reduced, Task, fails

_MOST_OTHERS = 8
"""The number of other failures that are kept: a user reads no more."""

_RUNS = 3
"""Runs that show whether a failure is flaky: of those in every second run, 1 in 8 is missed."""
_MORE_RUNS = 9
"""Further runs of a flaky program, whose rate of failures decides how often candidates run."""
_MISSED = 0.02
"""The accepted probability that a flaky failure does not appear in the runs of a candidate, a
choice: less needs more runs, more keeps what can be deleted."""
_MOST_REPEATS = 20  # enough for a failure in 18 % of the runs

_REPORT_PAUSE = 0.1
"""Seconds between reports of the progress, a choice: they look continuous."""

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class CandidateKind(Generic[C]):
    """What candidates are made of, and what the checker needs to know about them.

    Attributes:
        name: `equations` or `statements`.
        observe: runs a candidate in this process, and returns how it failed.
        digest: identifies a candidate in every process.
        count: returns how many units a candidate has.
        save: writes a candidate that fails like this as a file; raises `CannotEmit` if it cannot.
        admits: whether a candidate is run at all.
        keeps: whether another failure than the expected one is worth a file.
    """

    name: str
    observe: Callable[[C], RunFailure]
    digest: Callable[[C], str]
    count: Callable[[C], int]
    save: Callable[[C, RunFailure, Path], None]
    admits: Callable[[C], bool] = lambda candidate: True
    keeps: Callable[[RunFailure], bool] = lambda failure: failure.kind != FINISHED


@dataclass(slots=True)
class _Attempt(Generic[C]):
    """A candidate with its runs, of which the last may still run; none if the journal has it."""

    candidate: C
    digest: str
    runs: list[Child] = field(default_factory=list)

    def kill(self) -> None:
        for child in self.runs:
            child.kill()


@dataclass(slots=True)
class Checker(Generic[C]):
    """Checks candidates, in parallel.

    Attributes:
        accepted: the interesting candidates so far, of which the first is the original.
        check: that of the task, with thresholds that fit the original.
        expected: how the original fails.
        repeats: how often a candidate may run; one run that fails as expected suffices.
        confidence: the fraction of runs of the original that fail in this way.
        others: other failures, each with a candidate that fails so.
        tried: the number of candidates that were decided.
    """

    task: Task
    unit: CandidateKind[C]
    accepted: list[C]
    check: Check = field(init=False)
    expected: RunFailure = field(default_factory=lambda: RunFailure(HANG))
    repeats: int = 1
    confidence: float = 1.0
    others: dict[tuple[str, ...], tuple[RunFailure, C]] = field(default_factory=dict)
    tried: int = 0
    _started: float = field(default_factory=time.monotonic)
    _reported: float = 0.0

    def __post_init__(self) -> None:
        self.check = self.task.check

    def calibrate(self) -> None:
        """Run the original, to find out how it fails, and how often candidates must run.

        Raises:
            NotReproduced: it does not fail as expected.
        """
        (original,) = self.accepted
        failures = self._runs(original, 1 if self.check.seconds else _RUNS)
        expected = next(filter(self.task.is_expected, failures), None)
        if expected is None:
            seen = "; ".join(sorted({failure.headline for failure in failures}))
            raise NotReproduced(f"the program does not fail as expected ({seen})")
        self.expected, self.check = expected, self.check.calibrated(expected)
        hits = [self.check.same(failure, expected) for failure in failures]
        if all(hits):
            return
        hits += [self.check.same(each, expected) for each in self._runs(original, _MORE_RUNS)]
        self.confidence = sum(hits) / len(hits)
        if self.confidence < 1:
            needed = math.ceil(math.log(_MISSED) / math.log(1 - self.confidence))
            self.repeats = min(max(needed, 2), _MOST_REPEATS)

    def first(self, candidates: Iterable[C | None]) -> C | None:
        """Return the first interesting candidate, which is then accepted; None if none is."""
        window: deque[_Attempt[C]] = deque()
        remaining = (each for each in candidates if each is not None and self.unit.admits(each))
        try:
            while True:
                while len(window) < self.task.jobs and (each := next(remaining, None)) is not None:
                    attempt = _Attempt(each, self.unit.digest(each))
                    window.append(attempt)
                    if self.task.journal.failure(attempt.digest) is None:
                        self._start(attempt)
                if not window:
                    return None
                if self._is_interesting(window[0], window):
                    self.accepted.append(window[0].candidate)
                    self.progress()
                    return window[0].candidate
                window.popleft()
        finally:
            for attempt in window:
                attempt.kill()

    def exhausted(self, candidate: C, tries: Callable[[C], Iterable[C | None]]) -> C:
        """Return a candidate for which `tries` yields nothing interesting any more."""
        while (smaller := self.first(tries(candidate))) is not None:
            candidate = smaller
        return candidate

    def swept(self, candidate: C, tries: Callable[[C], Iterable[Callable[[], C | None]]]) -> C:
        """Return a candidate after each of `tries`; after a success, continue at the same place.

        What `tries` yields is called to make a candidate.
        """
        skipped = 0
        while True:
            made: list[tuple[C, int]] = []
            smaller = self.first(self._made(tries(candidate), skipped, made))
            if smaller is None:
                return candidate
            skipped = next(number for each, number in made if each is smaller)
            candidate = smaller

    def _made(
        self, tries: Iterable[Callable[[], C | None]], skipped: int, made: list[tuple[C, int]]
    ) -> Iterator[C]:
        """Yield the candidates after the first `skipped` tries; store each with its number."""
        for number, make in enumerate(tries):
            if number >= skipped and (candidate := make()) is not None:
                made.append((candidate, number))
                yield candidate

    def _start(self, attempt: _Attempt[C]) -> Child:
        """Start a run of a candidate."""

        def task() -> bytes:
            return json.dumps(self.unit.observe(attempt.candidate).record()).encode()

        attempt.runs.append(children.start(task, self.task.limits))
        return attempt.runs[-1]

    def _is_interesting(self, attempt: _Attempt[C], window: Iterable[_Attempt[C]]) -> bool:
        """Return whether a candidate fails as expected; keep other failures aside."""
        failure = self.task.journal.failure(attempt.digest)
        if failure is None:
            others = [each.runs[-1] for each in window if each.runs]
            failure = RunFailure(FINISHED)
            for number in range(self.repeats):  # as often as may be needed
                child = attempt.runs[0] if attempt.runs and not number else self._start(attempt)
                failure = _ended(child, others)
                if self.check.same(failure, self.expected):
                    break
            self.task.journal.add(attempt.digest, failure)
        self.tried += 1
        if time.monotonic() - self._reported >= _REPORT_PAUSE:
            self.progress()
        if self.check.same(failure, self.expected):
            return True
        if self.unit.keeps(failure) and len(self.others) < _MOST_OTHERS:
            self.others.setdefault(failure.signature, (failure, attempt.candidate))
        return False

    def _runs(self, candidate: C, count: int) -> list[RunFailure]:
        """Run a candidate several times, whatever is remembered; return how each run failed."""
        failures: list[RunFailure] = []
        while len(failures) < count:
            attempt = _Attempt(candidate, "")
            try:
                for _ in range(min(self.task.jobs, count - len(failures))):
                    self._start(attempt)
                failures += [_ended(child, attempt.runs) for child in attempt.runs]
            finally:
                attempt.kill()
        return failures

    def progress(self) -> None:
        """Report the size of the smallest candidate, and the number of those that were tried."""
        self._reported = time.monotonic()
        rate = self.tried / max(self._reported - self._started, 1e-9)
        count = self.unit.count(self.accepted[-1])
        event = {self.unit.name: count, "tried": self.tried, "rate": round(rate, 1)}
        self.task.report({"event": "progress", **event})


def _ended(child: Child, others: Sequence[Child]) -> RunFailure:
    """Wait for a child; return the failure that it observed, or how it ended itself."""
    ending = children.wait(child, others)
    if ending.kind != FINISHED:
        return ending
    try:
        return RunFailure(**json.loads(bytes(child.output)))
    except ValueError:
        return RunFailure(EXCEPTION, "SystemExit", "exit status 0")


Pass: TypeAlias = Callable[[C, Checker[C]], C]
"""Takes a candidate, and returns a smaller one that the checker has accepted, or the same."""


def reduced(checker: Checker[C], to_fixed_point: Pass[C]) -> Reduced:
    """Reduce the original of a calibrated checker, and write the result.

    Ctrl+C ends the reduction and keeps the smallest candidate so far.

    Raises:
        CannotEmit: `to_fixed_point` tried to write a candidate that cannot be written.
        CannotReduce: no candidate can be written, or none fails as expected in a fresh process.
    """
    checker.progress()
    (original,) = checker.accepted
    is_minimal = interrupted = False
    try:
        to_fixed_point(original, checker)
        is_minimal = True
    except KeyboardInterrupt:
        interrupted = True
    last = checker.accepted[-1]
    failure = _written(checker)
    result = checker.accepted[-1]
    others: list[Path] = []
    out = checker.task.out
    for other, candidate in checker.others.values():
        path = out.with_name(f"{out.stem}.other{len(others) + 1}.py")
        with suppress(CannotEmit):
            checker.unit.save(candidate, other, path)
            others.append(path)
    return Reduced(
        path=out,
        failure=failure,
        before=checker.unit.count(original),
        after=checker.unit.count(result),
        unit=checker.unit.name,
        tried=checker.tried,
        seconds=round(time.monotonic() - checker.task.start, 2),
        minimal=is_minimal and result is last,
        interrupted=interrupted,
        confidence=checker.confidence,
        others=tuple(others),
    )


def write_last(checker: Checker[C]) -> None:
    """Write the last accepted candidate, with the failure that was observed.

    Raises:
        CannotEmit: it cannot be written.
    """
    candidate = checker.accepted[-1]
    known = checker.task.journal.failure(checker.unit.digest(candidate)) or checker.expected
    checker.unit.save(candidate, known, checker.task.out)


def _written(checker: Checker[C]) -> RunFailure:
    """Write the last accepted candidate of which the file fails as expected; return how it fails.

    Candidates of which the file fails otherwise are removed.
    """
    accepted = checker.accepted
    step = 1
    while True:
        try:
            write_last(checker)
        except CannotEmit as error:
            problem = str(error)
        else:
            if (failure := _validated(checker)) is not None:
                return failure
            problem = f"the reduced {checker.unit.name} do not fail in a fresh process"
        if len(accepted) == 1:
            raise CannotReduce(problem)
        del accepted[max(len(accepted) - step, 1) :]
        step *= 2


def _validated(checker: Checker[C]) -> RunFailure | None:
    """Run the result in a fresh process; return its failure if it is the expected one."""
    check, expected = checker.check, checker.expected
    if isinstance(check, Script):
        return RunFailure(FINISHED)
    for _ in range(checker.repeats):
        failure = fails(checker.task.out, checker.task.limits)
        anywhere = RunFailure(failure.kind, failure.name, failure.message, expected.frame)
        if any(check.same(each, expected) for each in (failure, anywhere)):
            return failure
    return None
