"""Dives to the first NaN: into the loop or branch, at the iteration, in which it arises.

The program runs once, one operation at a time. What is found is the innermost inner program whose
operands are finite and that makes a NaN, with these operands.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import jax

from jaxsight_repro.failures import FINISHED
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.devices import placed
from jaxsight_repro.reducing.equations.candidates import (
    Candidate,
    Value,
    cheaper,
    is_finite_value,
    of_program,
)
from jaxsight_repro.reducing.equations.evaluation import (
    FirstNan,
    Path,
    Run,
    arguments_of,
    programs_of,
    stop_at_nan,
    value_of,
)
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program


def dive(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Return the innermost program that makes the first NaN, if the check holds for it."""
    if not checker.check.finite:
        return candidate
    ending, written = children.run(lambda: _search(candidate), checker.task.limits)
    if ending.kind != FINISHED or not written:
        return candidate
    tries: list[Candidate] = []
    for path, values in pickle.loads(written):
        try:
            tries.append(of_program(_at(candidate, path), values))
        except TypeError:
            continue
    return checker.first(cheaper(candidate, tries)) or candidate


def _at(candidate: Candidate, path: Path) -> Program:
    """Return the inner program at the end of a path."""
    equations: Sequence[Equation] = candidate.equations
    for position, which in path:
        program = programs_of(equations[position])[which]
        equations = program.jaxpr.eqns
    return program


def _search(candidate: Candidate) -> bytes:
    """Run a candidate; return the inner programs with finite operands around the first NaN."""
    candidate = placed(candidate)
    run = Run(is_split=True, observe=stop_at_nan)
    try:
        for _ in run.steps(candidate.equations, arguments_of(candidate)):
            pass
        return b""
    except FirstNan:
        pass
    innermost: list[tuple[Path, list[Value]]] = []
    for path, operands in reversed(run.frames):
        values = [value_of(jax.numpy.asarray(operand)) for operand in operands]
        known = [value for value in values if value is not None and is_finite_value(value)]
        if len(known) == len(values):
            innermost.append((path, known))
    return pickle.dumps(innermost)
