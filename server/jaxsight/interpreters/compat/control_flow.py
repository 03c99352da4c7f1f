"""Reads the parameters of loops and linear solves. Applies to JAX 0.8 to 0.12.

Private API used: the parameters of `scan` (`num_consts` and `num_carry`, from 0.11 on `ft_in`),
and of `custom_linear_solve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxsight.interpreters.compat.jaxpr_types import Params
from jaxsight.interpreters.compat.staging import Program, opened

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


def solves(
    params: Params, operands: Sequence[Operand]
) -> Iterator[tuple[Program | None, Sequence[Operand]]]:
    """Yield each function of a `custom_linear_solve`, with the operands that it captures.

    The order is that of `SOLVES`; a function that the solve does not have is None.
    """
    start = 0
    for name in SOLVES:
        count = getattr(params["const_lengths"], name)
        program = getattr(params["jaxprs"], name)
        yield None if program is None else opened(program), operands[start : start + count]
        start += count
