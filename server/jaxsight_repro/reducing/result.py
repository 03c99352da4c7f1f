"""How a reduction ends: with the smallest candidate whose file fails in a fresh process."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from jaxsight_repro.checks.base import Script
from jaxsight_repro.emit.repro_file import CannotEmit
from jaxsight_repro.failures import FINISHED, RunFailure
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.task import CannotReduce, Reduced, fails

C = TypeVar("C")

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
