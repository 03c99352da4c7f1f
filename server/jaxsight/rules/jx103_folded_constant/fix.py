"""JX103: a folded constant is computed once before, kept from XLA by a barrier, or becomes an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.rules.jx101_captured_constant import fix as jx101
from jaxsight.rules.jx102_folded_while_compiling.fix import once


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield the expression before the function, then behind a barrier, then with `jnp`."""
    yield from once(asked)
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


REMEDY = Remedy(
    "the expression computed once, before the function; `optimization_barrier` around an operand; "
    "`jnp` in place of `np`; an argument (unsafe)",
    candidates,
    timed=True,
)
