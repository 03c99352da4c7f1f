"""Replaces calls by the equations of the programs that they run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import Shrunk, Value, pruned
from jaxsight_source.compat.equations import called
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.staging import Program, is_dropped, is_literal, new_variable

Chosen = Callable[[Equation], bool]


class Copy:
    """Builds a candidate from the equations of others; variables are renamed."""

    def __init__(self, candidate: Shrunk) -> None:
        self.inputs: list[Var] = list(candidate.inputs)
        self.arguments: list[Value] = list(candidate.arguments)
        self.equations: list[Equation] = []
        self.outputs: list[Atom] = []
        """Outputs that the original does not have."""
        self._original = candidate
        self._atoms: dict[int, Atom] = {}

    def read(self, atom: Atom) -> Atom:
        """Return what replaces an atom of the original."""
        return atom if is_literal(atom) else self._atoms.get(id(atom), atom)

    def replace(self, var: Var, atom: Atom) -> None:
        """Let an atom replace a variable of the original."""
        self._atoms[id(var)] = atom

    def add(self, equation: Equation) -> None:
        """Append an equation of the original."""
        self.equations.append(equation.replace(invars=[self.read(a) for a in equation.invars]))

    def feed(self, var: Var, value: Value) -> None:
        """Make a variable an input."""
        self.inputs.append(var)
        self.arguments.append(value)

    def run(
        self, program: Program, operands: Sequence[Atom], chosen: Chosen | None = None
    ) -> list[Atom]:
        """Append the equations of a program, and return its results."""
        jaxpr = program.jaxpr
        values: dict[int, Atom] = dict(zip(map(id, jaxpr.invars), operands, strict=True))
        for var, constant in zip(jaxpr.constvars, program.consts, strict=True):
            own = new_variable(var.aval)
            self.feed(own, np.asarray(constant))
            values[id(var)] = own

        def read(atom: Atom) -> Atom:
            return atom if is_literal(atom) else values[id(atom)]

        for equation in jaxpr.eqns:
            atoms = [read(atom) for atom in equation.invars]
            inner = called(equation) if chosen is not None and chosen(equation) else None
            if inner is not None:
                results = self.run(inner, atoms, chosen)
                values.update(zip(map(id, equation.outvars), results, strict=True))
                continue
            outvars = [
                var if is_dropped(var) else new_variable(var.aval) for var in equation.outvars
            ]
            values.update(zip(map(id, equation.outvars), outvars, strict=True))
            self.equations.append(equation.replace(invars=atoms, outvars=outvars))
        return [read(atom) for atom in jaxpr.outvars]

    def finish(self) -> Shrunk:
        """Return the candidate, with the outputs of the original that equations produce."""
        produced = {id(var) for equation in self.equations for var in equation.outvars}
        outputs = [*map(self.read, self._original.outputs), *self.outputs]
        unique = {id(atom): atom for atom in outputs if id(atom) in produced}
        return pruned(
            Shrunk(
                tuple(self.inputs),
                tuple(self.arguments),
                tuple(self.equations),
                tuple(unique.values()),
            )
        )


def inlined(candidate: Shrunk, chosen: Chosen) -> Shrunk:
    """Return a candidate with the calls that `chosen` returns true for inlined, at every level."""
    copy = Copy(candidate)
    for equation in candidate.equations:
        program = called(equation) if chosen(equation) else None
        if program is None:
            copy.add(equation)
            continue
        results = copy.run(program, [copy.read(atom) for atom in equation.invars], chosen)
        for var, result in zip(equation.outvars, results, strict=True):
            copy.replace(var, result)
    return copy.finish()


def flatten(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Inline calls: all if possible, otherwise those of each kind, then one at a time."""
    calls = [equation for equation in candidate.equations if called(equation) is not None]
    if not calls:
        return candidate
    smaller = checker.first([inlined(candidate, lambda equation: True)])
    if smaller is not None:
        return smaller
    for name in sorted({equation.primitive.name for equation in calls}):

        def is_of_kind(equation: Equation, name: str = name) -> bool:
            return equation.primitive.name == name

        candidate = checker.first([inlined(candidate, is_of_kind)]) or candidate
    return checker.exhausted(
        candidate,
        lambda each: (
            inlined(each, partial(operator.is_, equation))
            for equation in each.equations
            if called(equation) is not None
        ),
    )
