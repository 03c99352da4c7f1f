"""JX309: many terms are added to a bfloat16 or float16 number, or to one that is float16 after.

`jnp.sum`, `jnp.mean` and products accumulate in float32 and round once; `jnp.cumsum` adds in a
tree. A carry, and the slots of a scatter, are rounded after each addition.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import LoopParts, loop_of
from jaxsight.rules.program.slices import scattered
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import parsed
from jaxsight.rules.wording import quoted
from jaxsight.wire.primitives import MOVES
from jaxsight.wire.program import LITERAL, Step

RULE = Rule(__name__, "Many terms are accumulated in bfloat16 or float16.", severity="warning")

LEAST = 256
"""Additions to one number, at least. A bfloat16 sum of equal terms stops growing after so many."""
_BITS = {"bfloat16": 8, "float16": 11}
"""Significant bits, with the implicit one (`jnp.finfo(dtype).nmant + 1`)."""
_ADDS = re.compile(r"\b(?:add|subtract)\b")
_SCATTERS = re.compile(r"\bsegment_sum\(|\.add\(")
_HALF_MAX = 65_504
"""The greatest float16 (`jnp.finfo(jnp.float16).max`)."""
_MEAN = 4
"""The mean of the terms from which a reported sum overflows, at most: usual values reach it."""
_DEPTH = 20
"""Equations between a carry and its addition that are looked at: moves, casts and selections."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield additions to a carry of a long loop, scatters that add many terms, and long sums."""
    flow, known = view.flow, ValueBounds(view.flow)
    visited: set[object] = set()
    for step in flow.forward_steps():
        if step.primitive in ("scan", "while"):
            yield from _in_loop(view, step, visited)
        elif step.primitive == "scatter-add":
            found, text = scattered(flow, step), view.quote(step.path)
            count = found.rows // found.slots if found is not None and found.slots else 0
            dtype = flow.value(step.results[0]).dtype
            if dtype in _BITS and count >= LEAST and _SCATTERS.search(text):
                adds = f"adds {count:,} {dtype} terms to a slot on average"
                yield _violation(step, dtype, f"{quoted(text, most=30)} {adds}")
        elif step.primitive == "convert_element_type" and view.wrote(step.path, "sum", "norm"):
            yield from _overflow(view, known, step)


def _overflow(view: ProgramView, known: ValueBounds, cast: Step) -> Iterator[Violation]:
    """Yield a cast to float16 of a sum of terms that are not negative."""
    flow = view.flow
    total = flow.maker_of(cast.operands[0])
    if flow.value(cast.results[0]).dtype != "float16" or total is None:
        return
    if total.primitive != "reduce_sum" or known.bounds(total.operands[0])[0] < 0:
        return
    count = flow.value(total.operands[0]).elements // flow.value(total.results[0]).elements
    mean = _HALF_MAX / max(1, count)
    if mean <= _MEAN and known.bounds(total.results[0])[1] > _HALF_MAX:
        yield Violation(
            f"float16 sum of {count:,} terms is inf where their mean is above {mean:.2g}",
            cast.path,
            help="cast to float32 before: `jnp.sum(x.astype(jnp.float32))`",
            notes=("the greatest float16 is 65,504",),
        )


def _in_loop(view: ProgramView, step: Step, reported: set[object]) -> Iterator[Violation]:
    flow, loop = view.flow, loop_of(view.flow, step)
    if loop is None or (count := _count(flow, step, loop)) < LEAST:
        return
    for carry in loop.carries:
        dtype = flow.value(carry.output).dtype
        added = _addition(flow, carry.output, flow.of(carry.inner), dtype)
        if dtype not in _BITS or added is None or added.span in reported:
            continue
        text = view.quote(added.path)
        if _is_written(text):
            reported.add(added.span)
            accumulates = f"accumulates {count:,} terms in {dtype}"
            yield _violation(added, dtype, f"{quoted(text, most=30)} {accumulates}")


def _violation(step: Step, dtype: str, message: str) -> Violation:
    bits = _BITS[dtype]
    lost = 2 ** (bits + 1)
    return Violation(
        message,
        step.path,
        help="keep the sum in float32, and cast it with `.astype` at the end",
        notes=(
            f"{dtype} has {bits} significant bits: terms below 1/{lost:,} of the sum are lost",
            f"a sum of equal terms stops growing at {2**bits:,} of them",
        ),
    )


def _count(flow: Flow, step: Step, loop: LoopParts) -> int:
    """Return how many iterations a loop runs, 0 where that is unknown."""
    if loop.test is None:
        length = step.parameter("length")
        return length if isinstance(length, int) else 0
    # `while_loop(lambda c: c[0] < n, …)` from a counter that begins at 0.
    match loop.test.steps:
        case (Step(primitive="lt", operands=(counter, bound)),):
            begins = {flow.of(carry.tested): flow.value(carry.outer).said for carry in loop.carries}
            limit = flow.value(bound)
            known = limit.origin == LITERAL and limit.said.isdigit()
            return int(limit.said) if known and begins.get(flow.of(counter)) == "0" else 0
        case _:
            return 0


def _addition(flow: Flow, after: int, before: int, dtype: str) -> Step | None:
    """Return the addition that makes a carry of what it was before.

    A compensated sum, which subtracts the old carry from the new one, is none.
    """

    def goes_on(step: Step) -> bool:
        is_followed = step.primitive in MOVES | {"add", "select_n"}
        return is_followed and flow.value(step.results[0]).dtype == dtype

    for step in flow.backwards(after, goes_on, _DEPTH):
        result = step.results[0]
        if step.primitive not in ("add", "sub") or flow.value(result).dtype != dtype:
            continue
        if any(user.primitive == "sub" for user in flow.used_by(result)):
            return None
        operands = step.operands if step.primitive == "add" else step.operands[:1]
        if before in {flow.stripped(operand) for operand in operands}:
            return step
    return None


def _is_written(text: str) -> bool:
    """Whether the user's own expression adds: an operator, or a call that names a function."""
    node = parsed(text)
    if isinstance(node, ast.Call):
        return _ADDS.search(text) is not None
    return isinstance(node, ast.BinOp | ast.AugAssign)
