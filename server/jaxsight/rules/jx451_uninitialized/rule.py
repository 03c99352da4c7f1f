"""JX451: a `jnp.empty` is read before anything is written into it.

Since JAX 0.11 its elements are not zero but what the memory holds, where the platform allows that
(the primitive `empty`). The program is followed from the array to the first equations that write
into it: which elements these leave is not known, so what comes after is not reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.primitives import (
    COPIES,
    CUMULATIVE,
    ELEMENTWISE,
    LOOPS,
    PICKS,
    RESHAPES,
    SCATTERS,
)
from jaxsight.wire.program import Step

RULE = Rule(
    __name__,
    "Elements of `jnp.empty` are read before they are written.",
    severity="warning",
    without_inputs=True,
)

_MOST = 64
"""Values that are followed, a choice: more is long code that few write."""
_READS = (
    ELEMENTWISE - COPIES - {"select_n"}
    | CUMULATIVE
    | {
        "argmax", "argmin", "dot_general", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min",
        "reduce_and", "reduce_or", "sort", "fft", "cholesky", "triangular_solve", "lu", "qr",
        "conv_general_dilated",
    }
)  # fmt: skip
"""Primitives that compute with all elements of each operand."""
_WHOLE = COPIES | RESHAPES | {"broadcast_in_dim", "transpose", "slice"}
"""Primitives whose result has nothing but elements of their operand."""


@dataclass(frozen=True, slots=True)
class Empty:
    """The call that makes the array, for the fix."""

    function: str


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield arrays of the user's `jnp.empty` that are read before they are written."""
    for step in view.flow.forward_steps("empty"):
        if not view.wrote(step.path, "empty", "empty_like"):
            continue
        read = _first_read(view.flow, step)
        if read is None:
            continue
        function = "empty_like" if view.wrote(step.path, "empty_like") else "empty"
        is_written = bool(view.quote(read.path))
        yield Violation(
            f"elements of `jnp.{function}` are read before they are written",
            read.path if is_written else step.path,
            help=f"use `jnp.{function.replace('empty', 'zeros')}`, or write all elements first",
            notes=(f"since JAX 0.11, `jnp.{function}` returns what the memory holds",),
            data=Empty(function),
            related=((step.path, "created here"),) if is_written else (),
        )


def _first_read(flow: Flow, empty: Step) -> Step | None:
    """Return the equation that reads an array first; none where something is written before."""
    if not flow.value(empty.results[0]).elements:
        return None
    waiting, seen = [(flow.of(empty.results[0]), False)], set[int]()
    while waiting:
        number, looped = waiting.pop()
        if number in seen or len(seen) > _MOST:
            continue
        seen.add(number)
        for user in flow.used_by(number):
            if user.backward:
                continue
            if _reads(flow, user, number, looped):
                return user
            within = looped or user.primitive in LOOPS
            waiting += ((after, within) for after in _after(flow, user, number))
    return None


def _reads(flow: Flow, user: Step, number: int, looped: bool) -> bool:
    """Whether an equation computes with elements of the array.

    In a loop, what is read at an index may have been written by an iteration before.
    """
    if user.primitive in _READS:
        later = [each for result in user.results for each in flow.used_by(result)]
        return not later or any(each.primitive != "select_n" for each in later)
    adds = SCATTERS - {"scatter"}
    is_read = user.primitive in (adds if looped else adds | PICKS)
    return is_read and flow.of(user.operands[0]) == number


def _after(flow: Flow, user: Step, number: int) -> Iterator[int]:
    """Yield the values that are the array, or a part of it, after an equation."""
    if user.primitive in _WHOLE:
        yield flow.of(user.results[0])
    elif (loop := loop_of(flow, user)) is not None:
        for carry in loop.carries:
            if flow.of(carry.outer) == number:
                yield carry.inner
                if carry.tested >= 0:
                    yield carry.tested
        yield from (inner for inner, outer in loop.captured.items() if flow.of(outer) == number)


# The fix: create an array of zeros.


@RULE.corrects("`jnp.zeros` instead of `jnp.empty` (unsafe)")
def candidates(context: FixContext, empty: Empty) -> Iterator[Candidate]:
    """Yield `zeros` in place of each `empty` of the function, and of the one that was reported."""
    function = context.function(context.node) or context.subject
    calls = [
        node
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Call)
        and context.called(node.func) == f"jax.numpy.{empty.function}"
        and isinstance(node.func, ast.Attribute)
    ]
    zeros = empty.function.replace("empty", "zeros")
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        name = f"{context.text(call.func.value)}.{zeros}"
        yield Candidate(f"Use `{name}`", (context.replace(call.func, name),), same=False)
