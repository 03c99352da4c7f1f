"""JX102 and JX103: what XLA would fold is kept from it by a barrier, or its constant becomes an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes import jx101
from jaxsight.engine.fixes.asked import Asked, Candidate

CODES = ("JX102", "JX103")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """A barrier around an operand first: it changes nothing but what the compiler knows."""
    yield from _barrier(asked)
    yield from jx101.by_jnp(asked)
    yield from jx101.to_argument(asked)


def _barrier(asked: Asked) -> Iterator[Candidate]:
    told: set[ast.expr] = set()
    operands: list[ast.expr] = list(jx101.globals_in(asked))
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        operands += call.args[:1]
    for operand in operands:
        if operand in told or isinstance(operand, ast.Constant):
            continue
        told.add(operand)
        shown = " ".join(asked.text(operand).split())
        shown = shown if len(shown) <= 30 else shown[:27] + "…"
        yield Candidate(
            f"Put an `optimization_barrier` around `{shown}`",
            (
                *asked.jax_import(),
                asked.replace(operand, f"{asked.lax}.optimization_barrier({asked.text(operand)})"),
            ),
        )
