"""Dives to the first NaN: into the loop or branch, at the iteration, in which it arises.

The program runs once, one operation at a time. What is found is the innermost inner program whose
operands are finite and that makes a NaN, with these operands.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxsight.interpreters.compat import control_flow
from jaxsight.interpreters.compat.equations import bind, called
from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.interpreters.compat.staging import Program, is_literal, opened
from jaxsight.repro.failures import FINISHED
from jaxsight.repro.reducing import children
from jaxsight.repro.reducing.checker import Checker
from jaxsight.repro.reducing.equations.candidates import (
    Candidate,
    Value,
    cost,
    is_finite_value,
    of_program,
)
from jaxsight.repro.reducing.equations.evaluation import arrays_of, value_of
from jaxsight.repro.values import has_nan

Path = tuple[tuple[int, int], ...]
"""The way to an inner program: of each level, the position of the equation, and which of its inner
programs it is.
"""


def dive(candidate: Candidate, checker: Checker[Candidate]) -> Candidate:
    """Return the innermost program that makes the first NaN, if the check holds for it."""
    settings = checker.settings
    if not settings.check.finite:
        return candidate
    ending, written = children.run(lambda: _search(candidate), settings.limits)
    if ending.kind != FINISHED or not written:
        return candidate
    tries: list[Candidate | None] = []
    for path, values in pickle.loads(written):
        program = _at(candidate, path)
        try:
            inside = of_program(program, values)
        except TypeError:
            continue
        if cost(inside) < cost(candidate):
            tries.append(inside)
    return checker.first(iter(tries)) or candidate


def _at(candidate: Candidate, path: Path) -> Program:
    """Return the inner program at the end of a path."""
    equations: Sequence[Equation] = candidate.equations
    program: Program | None = None
    for position, which in path:
        program = _programs(equations[position])[which]
        equations = program.jaxpr.eqns
    assert program is not None
    return program


def _programs(equation: Equation) -> list[Program]:
    """Return the inner programs of an equation that are run, in a fixed order."""
    match equation.primitive.name:
        case "scan":
            return [control_flow.scan(equation.params).body]
        case "while":
            return [opened(equation.params[name]) for name in ("body_jaxpr", "cond_jaxpr")]
        case "cond":
            return [opened(branch) for branch in equation.params["branches"]]
    program = called(equation)
    return [] if program is None else [program]


class _FoundNan(Exception):
    """The first NaN arose."""


@dataclass(slots=True)
class _Run:
    """A run of a program, one operation at a time."""

    frames: list[tuple[Path, Sequence[Any]]] = field(default_factory=list)
    """The inner programs that run, with their operands; the innermost one is last."""

    def equations(self, equations: Sequence[Equation], values: dict[int, Any], path: Path) -> None:
        for position, equation in enumerate(equations):
            operands = [
                atom.val if is_literal(atom) else values[id(atom)] for atom in equation.invars
            ]
            with equation.ctx.manager:
                results = self._results(equation, operands, (*path, (position, 0)))
            if any(map(has_nan, results)) and not any(map(has_nan, operands)):
                raise _FoundNan
            values.update(zip(map(id, equation.outvars), results, strict=True))

    def program(self, program: Program, operands: Sequence[Any], path: Path) -> list[Any]:
        self.frames.append((path, operands))
        values = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
        values.update(zip(map(id, program.jaxpr.constvars), program.consts, strict=True))
        self.equations(program.jaxpr.eqns, values, path)
        self.frames.pop()
        return [
            atom.val if is_literal(atom) else values[id(atom)] for atom in program.jaxpr.outvars
        ]

    def _results(self, equation: Equation, operands: list[Any], path: Path) -> Sequence[Any]:
        programs = _programs(equation)
        match equation.primitive.name:
            case "scan":
                return self._scan(equation, programs[0], operands, path)
            case "while":
                return self._while(equation, programs, operands, path)
            case "cond":
                branch = int(operands[0])
                return self.program(programs[branch], operands[1:], _which(path, branch))
        if programs:
            return self.program(programs[0], operands, path)
        return bind(equation, operands)

    def _scan(
        self, equation: Equation, body: Program, operands: list[Any], path: Path
    ) -> list[Any]:
        scan = control_flow.scan(equation.params)
        first = scan.consts + scan.carry
        consts, carry, xs = operands[: scan.consts], operands[scan.consts : first], operands[first:]
        rows: list[list[Any]] = []
        order = range(scan.length)
        for index in reversed(order) if scan.reverse else order:
            results = self.program(body, [*consts, *carry, *(x[index] for x in xs)], path)
            carry = results[: scan.carry]
            rows.append(results[scan.carry :])
        if not rows:
            return list(bind(equation, operands))
        if scan.reverse:
            rows.reverse()
        return [*carry, *(jax.numpy.stack(column) for column in zip(*rows, strict=True))]

    def _while(
        self, equation: Equation, programs: list[Program], operands: list[Any], path: Path
    ) -> list[Any]:
        tested, run = equation.params["cond_nconsts"], equation.params["body_nconsts"]
        for_test, for_body = operands[:tested], operands[tested : tested + run]
        carry = operands[tested + run :]
        body, test = programs
        while bool(self.program(test, [*for_test, *carry], _which(path, 1))[0]):
            carry = self.program(body, [*for_body, *carry], path)
        return carry


def _which(path: Path, which: int) -> Path:
    return (*path[:-1], (path[-1][0], which))


def _search(candidate: Candidate) -> bytes:
    """Run a candidate; return the inner programs with finite operands around the first NaN."""
    run = _Run()
    arguments = arrays_of(candidate.arguments)
    try:
        run.equations(
            candidate.equations, dict(zip(map(id, candidate.inputs), arguments, strict=True)), ()
        )
    except _FoundNan:
        pass
    else:
        return b""
    innermost: list[tuple[Path, list[Value]]] = []
    for path, operands in reversed(run.frames):
        values = [value_of(jax.numpy.asarray(operand)) for operand in operands]
        known = [value for value in values if value is not None and is_finite_value(value)]
        if len(known) == len(values):
            innermost.append((path, known))
    return pickle.dumps(innermost)
