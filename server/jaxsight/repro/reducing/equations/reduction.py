"""Reduces the equations of a program that can be traced."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from jaxsight.repro.emit.repro_file import CannotEmit
from jaxsight.repro.failures import HANG, Failure
from jaxsight.repro.reducing import loading
from jaxsight.repro.reducing.checker import Checker, Kind, Settings
from jaxsight.repro.reducing.equations import emission
from jaxsight.repro.reducing.equations.arguments import simplify
from jaxsight.repro.reducing.equations.bodies import prune, thin, unwrap
from jaxsight.repro.reducing.equations.candidates import Candidate, Digests, cost, is_finite
from jaxsight.repro.reducing.equations.deletion import bypass, delete, drop_outputs, trim
from jaxsight.repro.reducing.equations.dive import dive
from jaxsight.repro.reducing.equations.emission import Form
from jaxsight.repro.reducing.equations.evaluation import observed
from jaxsight.repro.reducing.equations.inlining import flatten, inlined
from jaxsight.repro.reducing.equations.recording import Recorded, record
from jaxsight.repro.reducing.equations.sizes import narrow, shrink
from jaxsight.repro.reducing.flakiness import calibrate
from jaxsight.repro.reducing.options import CannotReduce, NotReproduced, Reduced
from jaxsight.repro.reducing.task import Task, fails

_EAGER_RUN = 5
"""How many times as long as a candidate the original may run without `jit`."""


def reduce(task: Task) -> Reduced:
    """Reduce the program of a repro.

    Raises:
        Unloadable: it cannot be traced.
        CannotEmit: it has parts that cannot be written.
        NotReproduced: it does not fail as expected.
    """
    inputs = loading.inputs_of(task.loaded, task.limits)
    candidate = loading.traced(task.loaded, inputs, task.limits)
    checker, jitted, confidence = _checker(task, candidate)
    checker.progress(force=True)
    minimal = interrupted = False
    try:
        _to_fixed_point(checker.accepted[0], checker, partial(_emitted, task, checker, jitted))
        minimal = True
    except KeyboardInterrupt:
        interrupted = True
    last = checker.accepted[-1]
    failure = _emit(task, checker, jitted)
    return Reduced(
        path=task.out,
        failure=failure,
        before=candidate.count,
        after=checker.accepted[-1].count,
        unit="equations",
        tried=checker.tried,
        seconds=time.monotonic() - task.start,
        minimal=minimal and checker.accepted[-1] is last,
        interrupted=interrupted,
        confidence=confidence,
        others=_others(task, checker, jitted),
    )


def _checker(task: Task, candidate: Candidate) -> tuple[Checker[Candidate], bool, float]:
    """Find out how the program fails, compiled as a whole or not.

    Returns:
        A checker, whether the program is compiled, and the fraction of runs that fail.

    Raises:
        NotReproduced: it does not fail as expected.
    """
    finite = task.check.finite and is_finite(candidate)
    problem: NotReproduced | None = None
    for start, jitted in _starts(task, candidate):
        settings = Settings(task.check, Failure(HANG), task.limits, task.options.jobs)
        kind = _kind(task, settings, jitted, finite)
        checker = Checker(settings, kind, task.journal, task.report, [start])
        try:
            return checker, jitted, calibrate(checker, start, task.is_expected)
        except NotReproduced as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _starts(task: Task, candidate: Candidate) -> Iterator[tuple[Candidate, bool]]:
    """Yield the programs to reduce, of which the first that fails counts; and whether with jit.

    Without `jit`, a large program is run only once, with its calls inlined, if that suffices.
    """
    if task.check.eager:
        inside = inlined(candidate, lambda equation: True)
        limits = replace(task.limits, seconds=_EAGER_RUN * task.limits.seconds)
        recorded = record(inside, limits, split=True)
        if recorded.finished:
            yield replace(inside, eager=recorded.values), True
    yield candidate, True
    if task.check.lines(jitted=False) != task.check.lines(jitted=True):
        yield candidate, False


def _kind(task: Task, settings: Settings, jitted: bool, finite: bool) -> Kind[Candidate]:
    digests = Digests()

    def in_place(candidate: Candidate) -> Failure:
        return observed(candidate, settings.check, jitted)

    def in_file(candidate: Candidate) -> Failure:
        form = Form(settings.check, jitted, settings.expected, task.environment)
        with tempfile.TemporaryDirectory(prefix="jaxsight-candidate-") as folder:
            path = Path(folder, "candidate.py")
            emission.write_here(candidate, form, path)
            return fails(path, task.limits)

    return Kind(
        "equations",
        observe=in_file if task.check.as_file else in_place,
        digest=lambda candidate: f"{digests.of(candidate)}{'j' * jitted}",
        count=lambda candidate: candidate.count,
        admits=is_finite if finite else lambda candidate: True,
    )


def _to_fixed_point(
    candidate: Candidate, checker: Checker[Candidate], emit: Callable[[], None]
) -> None:
    """Apply all passes until none makes the candidate smaller.

    Raises:
        CannotEmit: it has parts that cannot be written, which stay when equations are deleted.
    """
    candidate = dive(candidate, checker)
    while True:
        before = cost(candidate)
        candidate = flatten(candidate, checker)
        candidate, recorded = _recorded(candidate, checker)
        candidate = delete(candidate, checker, recorded)
        if candidate.count < before[0]:
            emit()
        candidate = drop_outputs(candidate, checker)
        candidate = bypass(candidate, checker)
        candidate = unwrap(candidate, checker, recorded)
        candidate = thin(candidate, checker)
        candidate = prune(candidate, checker)
        candidate = shrink(candidate, checker)
        candidate = narrow(candidate, checker)
        candidate = simplify(candidate, checker)
        if cost(candidate) >= before:
            return


def _recorded(candidate: Candidate, checker: Checker[Candidate]) -> tuple[Candidate, Recorded]:
    """Return a candidate with the values of its variables.

    Where values do not matter for the check, fewer equations are left, as running them takes time.
    """
    check = checker.settings.check
    if candidate.eager:
        return candidate, Recorded(dict(candidate.eager))
    if not check.eager and not check.finite:
        candidate = trim(candidate, checker)
    recorded = record(candidate, checker.settings.limits, split=check.eager)
    return (replace(candidate, eager=recorded.values) if check.eager else candidate), recorded


def _emit(task: Task, checker: Checker[Candidate], jitted: bool) -> Failure:
    """Write the last accepted candidate of which the file fails as expected; return how it fails.

    Candidates of which the file fails otherwise are removed.

    Raises:
        CannotReduce: there is none.
    """
    settings = checker.settings
    accepted = checker.accepted
    step = 1
    while True:
        try:
            _emitted(task, checker, jitted)
        except CannotEmit as error:
            problem = str(error)
        else:
            failure = task.validated(settings)
            if failure is not None:
                return failure
            problem = "the reduced program does not fail in a fresh process"
        if len(accepted) == 1:
            raise CannotReduce(problem)
        del accepted[max(len(accepted) - step, 1) :]
        step *= 2


def _emitted(task: Task, checker: Checker[Candidate], jitted: bool) -> None:
    """Write the last accepted candidate, with the failure that was observed.

    Raises:
        CannotEmit: it cannot be written.
    """
    settings = checker.settings
    candidate = checker.accepted[-1]
    known = checker.journal.failure(checker.kind.digest(candidate)) or settings.expected
    form = Form(settings.check, jitted, known, task.environment)
    emission.emit(candidate, form, task.out, task.limits)


def _others(task: Task, checker: Checker[Candidate], jitted: bool) -> tuple[Path, ...]:
    """Write the candidates that failed in other ways."""
    paths: list[Path] = []
    for number, (failure, candidate) in enumerate(checker.others.values(), start=1):
        path = task.out.with_name(f"{task.out.stem}.other{number}.py")
        form = Form(checker.settings.check, jitted, failure, task.environment)
        with suppress(CannotEmit):
            emission.emit(candidate, form, path, task.limits)
            paths.append(path)
    return tuple(paths)
