"""Reduces the equations of a program that can be traced."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from jaxsight_repro import values
from jaxsight_repro.emit import repro_file
from jaxsight_repro.emit.repro_file import About, CannotEmit
from jaxsight_repro.failures import FINISHED, RunFailure
from jaxsight_repro.reducing import children, loading
from jaxsight_repro.reducing.checker import CandidateKind, Checker, Pass, reduced, write_last
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.equations.bodies import prune, shorten, thin, unwrap
from jaxsight_repro.reducing.equations.candidates import Digests, Keys, Shrunk, cost, is_finite
from jaxsight_repro.reducing.equations.deletion import bypass, delete, drop_outputs, simplify, trim
from jaxsight_repro.reducing.equations.evaluation import (
    environment_of,
    function_of,
    observed,
    placed,
)
from jaxsight_repro.reducing.equations.inlining import flatten, inlined
from jaxsight_repro.reducing.equations.ranks import flatter
from jaxsight_repro.reducing.equations.recording import Recorded, dive, record
from jaxsight_repro.reducing.equations.sizes import narrow, shrink
from jaxsight_repro.reducing.meshes import fewer_devices
from jaxsight_repro.reducing.task import NotReproduced, Reduced, Task, fails

_EAGER_RUN = 5
"""Times as long as a candidate that the original may run without `jit`: it does so once."""


def reduce(task: Task) -> Reduced:
    """Reduce the program of a repro.

    Raises:
        Unloadable: it cannot be traced.
        CannotEmit: it has parts that cannot be written.
        NotReproduced: it does not fail as expected.
    """
    inputs = loading.inputs_of(task.loaded, task.limits)
    candidate = loading.traced(task.loaded, inputs, task.limits)
    finite = task.check.finite and is_finite(candidate)
    problem: NotReproduced | None = None
    for start, jitted in _starts(task, candidate):
        checker = _checker(task, start, jitted=jitted, finite=finite)
        try:
            checker.calibrate()
        except NotReproduced as error:
            problem = problem or error
        else:
            return replace(reduced(checker, _to_fixed_point), before=candidate.count)
    assert problem is not None
    raise problem


def _starts(task: Task, candidate: Shrunk) -> Iterator[tuple[Shrunk, bool]]:
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


def _checker(task: Task, start: Shrunk, *, jitted: bool, finite: bool) -> Checker[Shrunk]:
    digests = Digests()

    def observe(candidate: Shrunk) -> RunFailure:
        if not task.check.as_file:
            return observed(candidate, checker.check, jitted)
        with tempfile.TemporaryDirectory(prefix="jaxsight-candidate-") as folder:
            path = Path(folder, "candidate.py")
            write(candidate, about(candidate, checker.expected), path)
            return fails(path, task.limits)

    def about(candidate: Shrunk, failure: RunFailure) -> About:
        environment = environment_of(candidate, task.environment)
        return About(failure, environment, checker.check.lines(jitted))

    unit = CandidateKind(
        "equations",
        observe,
        digest=lambda candidate: f"{digests.of(candidate)}{'j' * jitted}",
        count=lambda candidate: candidate.count,
        save=lambda candidate, failure, path: write_in_child(
            candidate, about(candidate, failure), path, task.limits
        ),
        admits=is_finite if finite else lambda candidate: True,
    )
    checker = Checker(task, unit, [start])
    return checker


def _to_fixed_point(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
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
            write_last(checker)
        unwrap_recorded: Pass[Shrunk] = partial(unwrap, recorded=recorded)
        shorten_recorded: Pass[Shrunk] = partial(shorten, recorded=recorded)
        loops = (unwrap_recorded, shorten_recorded)
        others = (bypass, *loops, thin, prune, fewer_devices, shrink, flatter, narrow, simplify)
        for each in (drop_outputs, *others):
            candidate = each(candidate, checker)
        if cost(candidate) >= before:
            return candidate


def _recorded(candidate: Shrunk, checker: Checker[Shrunk]) -> tuple[Shrunk, Recorded]:
    """Return a candidate with the values of its variables.

    Where values do not matter for the check, fewer equations are left, as running them takes time.
    """
    check = checker.check
    if candidate.eager:
        return candidate, Recorded(dict(candidate.eager))
    if not check.eager and not check.finite:
        candidate = trim(candidate, checker)
    recorded = record(candidate, checker.task.limits, split=check.eager)
    return (replace(candidate, eager=recorded.values) if check.eager else candidate), recorded


_Kind = Literal["jax", "numpy"]


def write_in_child(candidate: Shrunk, about: About, path: Path, limits: ChildLimits) -> None:
    """Write a candidate as a repro, in a child.

    Where JAX itself fails on arrays of such values, they are written as NumPy's.

    Raises:
        CannotEmit: it cannot be written.
    """

    def task(kind: _Kind) -> bytes:
        try:
            write(candidate, about, path, kind)
        except CannotEmit as error:
            return str(error).encode() or b"unknown reason"
        return b""

    ending, output = children.run(lambda: task("jax"), limits)
    if ending.kind != FINISHED:
        ending, output = children.run(lambda: task("numpy"), limits)
    if output or ending.kind != FINISHED:
        raise CannotEmit(output.decode(errors="replace") or ending.headline)


def write(candidate: Shrunk, about: About, path: Path, kind: _Kind = "jax") -> None:
    """Write a candidate as a repro, in this process; this may initialize its backend.

    Raises:
        CannotEmit: it cannot be written.
    """
    candidate = placed(candidate)
    names = [f"x{index}" if index else "x" for index in range(len(candidate.inputs))]
    arguments = [
        values.ConcreteValue(value.data, key=value.impl)
        if isinstance(value, Keys)
        else values.ConcreteValue(value, kind)
        for value in candidate.arguments
    ]
    repro_file.write(function_of(candidate), arguments, names, about).save(path)
