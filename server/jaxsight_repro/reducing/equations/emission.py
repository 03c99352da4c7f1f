"""Writes candidates as repros."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from jaxsight_repro import values
from jaxsight_repro.emit import repro_file
from jaxsight_repro.emit.repro_file import About, CannotEmit
from jaxsight_repro.failures import FINISHED
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.devices import placed
from jaxsight_repro.reducing.equations.candidates import Candidate, Keys
from jaxsight_repro.reducing.equations.evaluation import function_of

_Kind = Literal["jax", "numpy"]


def write_in_child(candidate: Candidate, about: About, path: Path, limits: ChildLimits) -> None:
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


def write(candidate: Candidate, about: About, path: Path, kind: _Kind = "jax") -> None:
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
