"""Writes candidates as repros, and runs them in fresh processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.repro import values
from jaxsight.repro.checks.base import Check
from jaxsight.repro.emit.repro_file import About, CannotEmit, write
from jaxsight.repro.environment import Environment
from jaxsight.repro.failures import FINISHED, Failure
from jaxsight.repro.reducing import children
from jaxsight.repro.reducing.children import Limits
from jaxsight.repro.reducing.equations.candidates import Candidate, Keys, Value
from jaxsight.repro.reducing.equations.evaluation import function_of


@dataclass(frozen=True, slots=True)
class Form:
    """What a written candidate says besides its program."""

    check: Check
    jitted: bool
    failure: Failure
    environment: Environment
    notes: Sequence[str] = ()


def emit(candidate: Candidate, form: Form, path: Path, limits: Limits) -> None:
    """Write a candidate as a repro, in a child.

    Where JAX itself fails on arrays of such values, they are written as NumPy's.

    Raises:
        CannotEmit: it cannot be written.
    """
    ending, output = children.run(lambda: _task(candidate, form, path, "jax"), limits)
    if ending.kind != FINISHED:
        ending, output = children.run(lambda: _task(candidate, form, path, "numpy"), limits)
    if output or ending.kind != FINISHED:
        raise CannotEmit(output.decode(errors="replace") or ending.headline)


def _task(candidate: Candidate, form: Form, path: Path, kind: str) -> bytes:
    try:
        write_here(candidate, form, path, kind)
    except CannotEmit as error:
        return str(error).encode() or b"unknown reason"
    return b""


def write_here(candidate: Candidate, form: Form, path: Path, kind: str = "jax") -> None:
    """Write a candidate as a repro, in this process; this may initialize its backend.

    Raises:
        CannotEmit: it cannot be written.
    """
    about = About(form.failure, form.environment, form.check.lines(form.jitted), notes=form.notes)
    names = [f"x{index}" if index else "x" for index in range(len(candidate.inputs))]
    arguments = [_value(value, kind) for value in candidate.arguments]
    write(function_of(candidate), arguments, names, about).save(path)


def _value(value: Value, kind: str) -> values.Value:
    if isinstance(value, Keys):
        return values.Value(value.data, key=value.impl)
    return values.Value(value, kind)
