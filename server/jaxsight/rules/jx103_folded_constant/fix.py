"""Fix JX103: hide an operand from constant folding, or pass the constant as an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import constants
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx103_folded_constant.rule import FoldedConstant


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield a barrier around each operand, then `jnp` instead of `np`, then an argument."""
    constant = context.finding.data
    if not isinstance(constant, FoldedConstant):
        return
    reported: set[ast.expr] = set()
    operands: list[ast.expr] = list(constants.globals_in(context))
    for call in context.find(ast.Call):
        operands += call.args[:1]
    for operand in operands:
        if operand in reported or isinstance(operand, ast.Constant):
            continue
        reported.add(operand)
        shown = " ".join(context.text(operand).split())
        shown = shown if len(shown) <= 30 else shown[:27] + "…"
        barrier = f"{context.lax}.optimization_barrier({context.text(operand)})"
        yield Candidate(
            f"Put an `optimization_barrier` around `{shown}`",
            (*context.jax_import(), context.replace(operand, barrier)),
        )
    yield from constants.by_jnp(context)
    yield from constants.to_argument(context, constant.type)


REMEDY = Remedy(
    "`optimization_barrier` around an operand; `jnp` instead of `np`; an argument (unsafe)",
    candidates,
    timed=True,
)
