"""Reads the parameters of loops, and which values functions capture. Applies to JAX 0.8 to 0.12.

Private API used: the parameters of `scan` (`num_consts` and `num_carry`, from 0.11 on `ft_in`), of
`while`, of `custom_linear_solve` and of functions with custom derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.compat.staging import Program, opened

Operand = TypeVar("Operand")


@dataclass(frozen=True, slots=True)
class Scan:
    """The parameters of a scan, independent of the JAX version.

    `consts` and `carry` count operands; `length` counts iterations.
    """

    consts: int
    carry: int
    body: Program
    length: int
    reverse: bool
    unroll: int | bool
    split_transpose: bool


def scan(params: Params) -> Scan:
    """Read the parameters of a `scan`."""
    if "ft_in" in params:
        consts, carry, _ = params["ft_in"].unpack()
        counts = len(consts), len(carry)
    else:
        counts = params["num_consts"], params["num_carry"]
    return Scan(
        *counts,
        opened(params["jaxpr"]),
        params["length"],
        params["reverse"],
        params["unroll"],
        params.get("_split_transpose", False),
    )


SOLVES = ("matvec", "vecmat", "solve", "transpose_solve")
"""The functions of a linear solve, in the order of the values that they capture."""


Captures: TypeAlias = tuple[list[tuple[str, Program | None, Sequence[Operand]]], Sequence[Operand]]
"""The functions of an equation, with the operands that each captures, and the other operands.

A function has a name, and the captured values are its first inputs. One that a linear solve does
not have is `None`.
"""


def captures(equation: Equation, operands: Sequence[Operand]) -> Captures[Operand] | None:
    """Return what the functions of an equation capture; `None` if it has none that do.

    Loops, linear solves and functions with custom derivatives have some.
    """
    params = equation.params
    match equation.primitive.name:
        case "scan":
            loop = scan(params)
            counts: list[tuple[str, object, int]] = [("body", loop.body, loop.consts)]
        case "while":
            parts = ("cond", "body")
            counts = [(name, params[f"{name}_jaxpr"], params[f"{name}_nconsts"]) for name in parts]
        case "custom_linear_solve":
            jaxprs, lengths = params["jaxprs"], params["const_lengths"]
            counts = [(name, getattr(jaxprs, name), getattr(lengths, name)) for name in SOLVES]
        case "custom_jvp_call" | "custom_vjp_call":
            counts = [("body", params["call_jaxpr"], params["num_consts"])]
        case _:
            return None
    functions: list[tuple[str, Program | None, Sequence[Operand]]] = []
    start = 0
    for name, jaxpr, count in counts:
        program = None if jaxpr is None else opened(jaxpr)
        functions.append((name, program, operands[start : start + count]))
        start += count
    return functions, operands[start:]


def while_loop(
    equation: Equation, operands: Sequence[Operand]
) -> tuple[Program, Sequence[Operand], Program, Sequence[Operand], Sequence[Operand]]:
    """Return the condition and the body of a `while`, each with what it captures, and the carry."""
    (test, body), carry = cast(Any, captures(equation, operands))
    return (*test[1:], *body[1:], carry)
