"""Records the values of all variables of a candidate, by running it once, equation by equation."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax

from jaxsight_repro.failures import FINISHED
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.equations import evaluation
from jaxsight_repro.reducing.equations.candidates import (
    Keys,
    Shrunk,
    Value,
    cheaper,
    is_finite_value,
    of_program,
)
from jaxsight_repro.reducing.equations.evaluation import EquationRun, arguments_of, placed, value_of
from jaxsight_repro.values import has_nan
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program

_MOST_BYTES = 1 << 30
"""Bytes of all recorded values together, a choice: this process holds them. Later ones are not
recorded, and equations that need them are not cut off."""


@dataclass(slots=True)
class Recorded:
    """The values of variables, by identity, and where something went wrong.

    Attributes:
        suspects: positions of equations that failed alone, or that first returned NaN.
        finished: whether all equations ran.
    """

    values: dict[int, Value] = field(default_factory=dict)
    suspects: list[int] = field(default_factory=list)
    finished: bool = False


def record(candidate: Shrunk, limits: ChildLimits, *, split: bool = False) -> Recorded:
    """Run a candidate in a child; where it fails, the values so far are kept.

    Args:
        split: whether loops are run one operation at a time too, as without `jit`.
    """
    recorded = Recorded()
    with tempfile.TemporaryDirectory(prefix="jaxsight-values-") as folder:
        file = Path(folder, "values")
        ending, _ = children.run(lambda: _write(candidate, file, split), limits)
        entries = list(_read(file))
    for position, (makes_nan, values) in enumerate(entries):
        if makes_nan:
            recorded.suspects.append(position)
        for var, value in zip(candidate.equations[position].outvars, values, strict=True):
            if value is not None:
                recorded.values[id(var)] = value
    recorded.finished = len(entries) == len(candidate.equations)
    if ending.kind != FINISHED and not recorded.finished:
        recorded.suspects.append(len(entries))
    return recorded


def _write(candidate: Shrunk, file: Path, split: bool) -> bytes:
    """Write the results of each equation, and whether it makes the first NaN."""
    candidate = placed(candidate)
    size = 0
    poisoned = False
    with file.open("wb") as data, jax.disable_jit(split):
        for operands, results in EquationRun(split).steps(
            candidate.equations, arguments_of(candidate)
        ):
            values = [value_of(result) for result in results]
            size += sum(map(_size, values))
            makes_nan = not poisoned and any(map(has_nan, results))
            makes_nan = makes_nan and not any(map(has_nan, operands))
            kept = values if size <= _MOST_BYTES else [None] * len(values)
            pickle.dump((makes_nan, kept), data, pickle.HIGHEST_PROTOCOL)
            data.flush()  # a later equation may end this process
            poisoned |= makes_nan
    return b""


def _size(value: Value | None) -> int:
    if value is None:
        return 0
    return value.data.nbytes if isinstance(value, Keys) else value.nbytes


def _read(file: Path) -> Iterator[tuple[bool, Sequence[Value | None]]]:
    """Yield what `_write` wrote, which may have ended anywhere."""
    try:
        with file.open("rb") as data:
            while True:
                yield pickle.load(data)
    except (EOFError, FileNotFoundError, pickle.UnpicklingError):
        return


def dive(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return the innermost program that makes the first NaN, if the check holds for it."""
    if not checker.check.finite:
        return candidate
    ending, written = children.run(lambda: _search(candidate), checker.task.limits)
    if ending.kind != FINISHED or not written:
        return candidate
    tries: list[Shrunk] = []
    for path, values in pickle.loads(written):
        try:
            tries.append(of_program(_at(candidate, path), values))
        except TypeError:
            continue
    return checker.first(cheaper(candidate, tries)) or candidate


def _at(candidate: Shrunk, path: evaluation.Path) -> Program:
    """Return the inner program at the end of a path."""
    equations: Sequence[Equation] = candidate.equations
    for position, which in path:
        program = evaluation.programs_of(equations[position])[which]
        equations = program.jaxpr.eqns
    return program


def _search(candidate: Shrunk) -> bytes:
    """Run a candidate; return the inner programs with finite operands around the first NaN."""
    candidate = placed(candidate)
    run = evaluation.EquationRun(is_split=True, observe=evaluation.stop_at_nan)
    try:
        for _ in run.steps(candidate.equations, evaluation.arguments_of(candidate)):
            pass
        return b""
    except evaluation.FirstNan:
        pass
    innermost: list[tuple[evaluation.Path, list[Value]]] = []
    for path, operands in reversed(run.frames):
        values = [evaluation.value_of(jax.numpy.asarray(operand)) for operand in operands]
        known = [value for value in values if value is not None and is_finite_value(value)]
        if len(known) == len(values):
            innermost.append((path, known))
    return pickle.dumps(innermost)
