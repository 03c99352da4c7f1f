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

    Raises:
        CannotEmit: it cannot be written.
    """

    def task() -> bytes:
        try:
            _write(candidate, form, path)
        except CannotEmit as error:
            return str(error).encode() or b"unknown reason"
        return b""

    ending, output = children.run(task, limits)
    if output or ending.kind != FINISHED:
        raise CannotEmit(output.decode(errors="replace") or ending.headline)


def _write(candidate: Candidate, form: Form, path: Path) -> None:
    about = About(form.failure, form.environment, form.check.lines(form.jitted), notes=form.notes)
    names = [f"x{index}" if index else "x" for index in range(len(candidate.inputs))]
    arguments = [_value(value) for value in candidate.arguments]
    write(function_of(candidate), arguments, names, about).save(path)


def _value(value: Value) -> values.Value:
    if isinstance(value, Keys):
        return values.Value(value.data, key=value.impl)
    return values.Value(value)
