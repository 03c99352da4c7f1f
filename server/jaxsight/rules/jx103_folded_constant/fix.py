"""Fix JX103: hide an operand from constant folding, or pass the constant as an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.rules.jx101_captured_constant import fix as jx101
from jaxsight.rules.jx103_folded_constant.rule import FoldedConstant


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield a barrier around each operand, then `jnp` instead of `np`, then an argument."""
    constant = asked.finding.data
    if not isinstance(constant, FoldedConstant):
        return
    yield from _barrier(asked)
    yield from jx101.by_jnp(asked)
    yield from jx101.to_argument(asked, constant.type)


def _barrier(asked: Asked) -> Iterator[Candidate]:
    seen: set[ast.expr] = set()
    operands: list[ast.expr] = list(jx101.globals_in(asked))
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        operands += call.args[:1]
    for operand in operands:
        if operand in seen or isinstance(operand, ast.Constant):
            continue
        seen.add(operand)
        shown = " ".join(asked.text(operand).split())
        shown = shown if len(shown) <= 30 else shown[:27] + "…"
        yield Candidate(
            f"Put an `optimization_barrier` around `{shown}`",
            (
                *asked.jax_import(),
                asked.replace(operand, f"{asked.lax}.optimization_barrier({asked.text(operand)})"),
            ),
        )


REMEDY = Remedy(
    "`optimization_barrier` around an operand; `jnp` instead of `np`; an argument (unsafe)",
    candidates,
    timed=True,
)
