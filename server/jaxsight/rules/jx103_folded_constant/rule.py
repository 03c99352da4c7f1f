"""JX103: a large constant that XLA folded is embedded in the executable."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from jaxsight.meshes.divided import ArrayType, array_type
from jaxsight.rules.fixing import constants
from jaxsight.rules.fixing.constants import captured
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size, time

RULE = Rule(__name__, "Large folded constant embedded in the executable.", severity="warning")
LARGE = MIB
"""Bytes from which a constant is reported, as a captured array is (`fixing/constants.py`)."""


_HELP = (
    "compute it where it is used, from `jnp.arange` or `jax.lax.iota` (`jnp.where(i == k, …)`), "
    "or pass it as an argument"
)


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find folded constants of a mebibyte or more in the optimized program.

    A captured array that XLA only stores in another layout or shape is reported by JX101.
    """
    captured_kinds = {_kind(value.text) for value, _ in captured(view)}
    for constant in view.on_target.graph.constants:
        if not constant.folded or constant.value.bytes < LARGE:
            continue
        if _kind(constant.value.text) in captured_kinds:
            continue
        at = next((path for path in constant.equations if path in view.flow.steps), "")
        kind = constant.value.text
        origin = f"{view.quoted(at)} was folded into" if at else "XLA computed"
        yield Violation(
            f"folded constant of {size(constant.value.bytes)} is embedded in the executable",
            at,
            help=_HELP,
            notes=(
                f"{origin} {kind}, which also takes device memory",
                f"compiling the function took {time(view.on_target.compile_seconds)}",
            ),
            data=kind,
        )


def _kind(text: str) -> tuple[str, int]:
    """Return the dtype and the number of elements of a type, as jaxprs or HLO print it."""
    array = array_type(text) or ArrayType(text, ())
    dtype = "bool" if array.dtype == "pred" else re.sub(r"^s(?=\d)", "i", array.dtype)
    return dtype, math.prod(array.shape)


# The fix: hide an operand from constant folding, or pass the constant as an argument.


@RULE.fixes(
    "`optimization_barrier` around an operand; `jnp` instead of `np`; an argument (unsafe)",
    timed=True,
)
def candidates(context: FixContext, type: str) -> Iterator[Candidate]:
    """Yield a barrier around each operand, then `jnp` instead of `np`, then an argument.

    Args:
        context: the finding.
        type: that of the constant, as HLO prints it: `f32[512,512]`, `s32[4]`, `pred[8]`.
    """
    operands: list[ast.expr] = list(constants.globals_in(context))
    for call in context.find(ast.Call):
        operands += call.args[:1]
    for operand in dict.fromkeys(operands):
        if isinstance(operand, ast.Constant):
            continue
        shown = " ".join(context.text(operand).split())
        shown = shown if len(shown) <= 30 else shown[:27] + "…"
        barrier = f"{context.lax}.optimization_barrier({context.text(operand)})"
        yield Candidate(
            f"Put an `optimization_barrier` around `{shown}`",
            (*context.jax_import(), context.replace(operand, barrier)),
        )
    yield from constants.by_jnp(context)
    yield from constants.to_argument(context, type)
