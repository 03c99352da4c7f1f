"""Inlining of jitted functions, to compare programs through their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Var
from jaxsight_source.compat.staging import folded, opened, substituted
from jaxsight_source.jaxprs.same.tokens import Block, Token, value_token


@dataclass(eq=False, slots=True)
class _Variable:
    """A variable of a jitted function in one of its calls."""

    aval: Aval


def inlined(block: Block) -> Block:
    """Return the equations with the calls of jitted functions inlined."""
    inputs: list[tuple[Var, Token]] = list(block.inputs)
    equations: list[Equation] = []

    def walk(inner_equations: Sequence[Equation], atoms: dict[int, Atom]) -> None:
        for equation in inner_equations:
            invars = substituted(equation.invars, atoms)
            if equation.primitive.name not in ("jit", "pjit"):
                if atoms and (number := folded(equation, invars)) is not None:
                    atoms[id(equation.outvars[0])] = number
                    continue
                if atoms:
                    atoms |= {id(var): _Variable(var.aval) for var in equation.outvars}
                    outvars = [atoms[id(var)] for var in equation.outvars]
                    equation = equation.replace(invars=invars, outvars=outvars)
                equations.append(equation)
                continue
            program = opened(equation.params["jaxpr"])
            consts = [_Variable(var.aval) for var in program.jaxpr.constvars]
            inputs.extend(zip(consts, map(value_token, program.consts), strict=True))
            binders = [*program.jaxpr.constvars, *program.jaxpr.invars]
            inner_atoms = {
                id(var): atom for var, atom in zip(binders, [*consts, *invars], strict=True)
            }
            walk(program.jaxpr.eqns, inner_atoms)
            results = substituted(program.jaxpr.outvars, inner_atoms)
            atoms |= {id(var): atom for var, atom in zip(equation.outvars, results, strict=True)}

    outer_atoms: dict[int, Atom] = {}
    walk(block.equations, outer_atoms)
    return Block(inputs, equations, substituted(block.outputs, outer_atoms))
