"""Reduces the equations of a program that can be traced."""

from __future__ import annotations

import hashlib
import math
import time

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import jax

from jaxsight.repro.checks.base import Check
from jaxsight.repro.emit.repro_file import CannotEmit
from jaxsight.repro.environment import Environment
from jaxsight.repro.failures import HANG, Failure
from jaxsight.repro.reducing import emission, journal, loading
from jaxsight.repro.reducing.arguments import simplify
from jaxsight.repro.reducing.bodies import prune, thin, unwrap
from jaxsight.repro.reducing.candidates import Candidate, cost, is_finite
from jaxsight.repro.reducing.checker import Checker, Settings
from jaxsight.repro.reducing.children import Limits
from jaxsight.repro.reducing.deletion import delete, drop_outputs
from jaxsight.repro.reducing.emission import Form
from jaxsight.repro.reducing.inlining import flatten
from jaxsight.repro.reducing.loading import Loaded
from jaxsight.repro.reducing.options import CannotReduce, Options, Reduced, Report
from jaxsight.repro.reducing.recording import record
from jaxsight.repro.reducing.sizes import narrow, shrink

_RUNS = 3
"""How often the original runs, to find out whether its failure is flaky."""

_MORE_RUNS = 9
"""How often a flaky original runs in addition."""

_MISSED = 0.02
"""The accepted probability that a flaky failure does not appear in the runs of a candidate."""


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
    start: float


@dataclass(slots=True)
class _Progress:
    """The accepted candidates, in order, and whether the last one was found to be minimal."""

    accepted: list[Candidate] = field(default_factory=list)
    minimal: bool = False
    interrupted: bool = False


def reduce(task: Task) -> Reduced:
    """Reduce the program of a repro.

    Raises:
        Unloadable: it cannot be traced.
        CannotReduce: it does not fail as expected.
    """
    inputs = loading.inputs_of(task.loaded, task.limits)
    candidate = loading.traced(task.loaded, inputs)
    checker, confidence = _checker(task, candidate)
    progress = _Progress([candidate])
    checker.best = candidate
    checker.on_accept = progress.accepted.append
    checker.progress(force=True)
    try:
        _to_fixed_point(candidate, checker, task.limits)
        progress.minimal = True
    except KeyboardInterrupt:
        progress.interrupted = True
    failure = _emit(task, checker, progress)
    return Reduced(
        path=task.out,
        failure=failure,
        before=candidate.count,
        after=progress.accepted[-1].count,
        unit="equations",
        tried=checker.tried,
        seconds=time.monotonic() - task.start,
        minimal=progress.minimal,
        interrupted=progress.interrupted,
        confidence=confidence,
        others=_others(task, checker),
    )


def _checker(task: Task, candidate: Candidate) -> tuple[Checker, float]:
    """Find out how the program fails; return a checker, and the fraction of runs that fail.

    Raises:
        CannotReduce: it does not fail as expected.
    """
    title = "\n".join([task.loaded.text, task.check.text, jax.__version__, task.environment.python])
    log = journal.opened(task.options.state, hashlib.sha256(title.encode()).hexdigest())
    seen: list[Failure] = []
    for jitted in (True, False):
        settings = Settings(task.check, Failure(HANG), task.limits, task.options.jobs, jitted)
        checker = Checker(settings, log, task.report)
        failures = checker.runs(candidate, 1 if task.check.seconds else _RUNS)
        seen += failures
        hits = [failure for failure in failures if _is_expected(task, failure)]
        if hits:
            break
    else:
        others = sorted({failure.headline for failure in seen})
        raise CannotReduce(f"main does not fail as expected, but: {'; '.join(others)}")
    expected = hits[0]
    settings.expected = expected
    settings.check = task.check.calibrated(expected)
    settings.finite = task.check.finite and is_finite(candidate)
    same = [failure for failure in failures if settings.check.same(failure, expected)]
    if len(same) == len(failures):
        return checker, 1.0
    failures += checker.runs(candidate, _MORE_RUNS)
    same = [failure for failure in failures if settings.check.same(failure, expected)]
    rate = len(same) / len(failures)
    settings.repeats = min(max(math.ceil(math.log(_MISSED) / math.log(1 - rate)), 2), 20)
    return checker, rate


def _is_expected(task: Task, failure: Failure) -> bool:
    """Return whether the traced program fails as the file does."""
    original = task.original
    if original is None:
        return task.check.holds(failure)
    return failure.signature[:3] == original.signature[:3] or (
        failure.kind == original.kind == HANG
    )


def _to_fixed_point(candidate: Candidate, checker: Checker, limits: Limits) -> None:
    while True:
        before = cost(candidate)
        candidate = flatten(candidate, checker)
        recorded = record(candidate, limits)
        candidate = delete(candidate, checker, recorded)
        candidate = drop_outputs(candidate, checker)
        candidate = unwrap(candidate, checker, recorded)
        candidate = thin(candidate, checker)
        candidate = prune(candidate, checker)
        candidate = shrink(candidate, checker)
        candidate = narrow(candidate, checker)
        candidate = simplify(candidate, checker)
        if cost(candidate) >= before:
            return


def _emit(task: Task, checker: Checker, progress: _Progress) -> Failure:
    """Write the last accepted candidate of which the file fails as expected.

    Raises:
        CannotReduce: there is none.
    """
    settings = checker.settings
    form = Form(settings.check, settings.jitted, settings.expected, task.environment)
    problem = ""
    step = 1
    while True:
        try:
            emission.emit(progress.accepted[-1], form, task.out, task.limits)
        except CannotEmit as error:
            problem = str(error)
        else:
            for _ in range(settings.repeats):
                failure = emission.failure_of_file(task.out, task.limits)
                if _validates(settings, failure):
                    return failure
            problem = f"the reduced file fails otherwise: {failure.headline}"
        if len(progress.accepted) == 1:
            raise CannotReduce(problem)
        progress.minimal = False
        del progress.accepted[max(len(progress.accepted) - step, 1) :]
        step *= 2


def _validates(settings: Settings, failure: Failure) -> bool:
    """Return whether a file fails as candidates do; tracebacks differ between the two."""
    expected = settings.expected
    same_frame = Failure(failure.kind, failure.name, failure.message, expected.frame)
    return settings.check.same(failure, expected) or settings.check.same(same_frame, expected)


def _others(task: Task, checker: Checker) -> tuple[Path, ...]:
    """Write the candidates that failed in other ways."""
    paths: list[Path] = []
    settings = checker.settings
    for number, (failure, candidate) in enumerate(checker.others.values(), start=1):
        path = task.out.with_name(f"{task.out.stem}.other{number}.py")
        form = Form(settings.check, settings.jitted, failure, task.environment)
        with suppress(CannotEmit):
            emission.emit(candidate, form, path, task.limits)
            paths.append(path)
    return tuple(paths)
