"""Whether an equation is one to report: the user wrote it, and did not take care of it already."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.expressions import name_of, parsed
from jaxsight.wire.primitives import COMPARISONS, ELEMENTWISE, MOVES, ROUNDINGS
from jaxsight.wire.program import Step

_RULES = ("custom_jvp", "custom_vjp", "defjvp", "defvjp")
_NEAR = (ELEMENTWISE | MOVES | {"reduce_sum"}) - COMPARISONS - {"select_n"}
DECIDES = MOVES | {
    "and", "or", "not", "clamp", "min", "max", "reduce_and", "reduce_or", "argmax", "cumsum",
    "concatenate",
}  # fmt: skip
"""Primitives between comparisons and what they choose, also in `jnp.select` and `jnp.piecewise`."""
_NEAREST = 20
"""Equations from a comparison to the branch that it chooses: what is farther is another's."""


def has_rule(view: ProgramView, step: Step) -> bool:
    """Whether the function around an equation has a derivative rule of its own, or is one.

    Such functions are trusted: who writes a rule knows where it is used.
    """
    return step.path in view.flow.ruled or any(
        rule in ast.unparse(decorator)
        for node in view.around(step.path)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        for rule in _RULES
    )


def is_flat(flow: Flow, step: Step) -> bool:
    """Whether derivatives stop at an equation: it rounds, or gives integers or booleans.

    In functions with derivative rules of their own they do not: a rule may be straight-through.
    """
    if step.path in flow.ruled:
        return False
    if step.primitive in ROUNDINGS or step.primitive == "stop_gradient":
        return True
    return bool(step.results) and not any(flow.value(n).is_inexact for n in step.results)


Operators = Sequence[type[ast.operator | ast.unaryop]]


def is_written(text: str, calls: Collection[str], operators: Operators = ()) -> bool:
    """Whether an expression is itself a call of one of these functions, or one of the operators.

    Other expressions contain it, or are a library's.
    """
    match parsed(text):
        case ast.Call() as call:
            return name_of(call) in calls
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.UnaryOp(op=operator):
            return isinstance(operator, tuple(operators))
        case _:
            return False


def is_in_branch(flow: Flow, step: Step) -> bool:
    """Whether an equation is in a branch that a comparison chooses: it may be guarded."""
    branch = next((around for around in flow.enclosing(step) if around.primitive == "cond"), None)
    return branch is not None and any(
        maker.primitive in COMPARISONS
        for maker in flow.backwards(branch.operands[0], DECIDES, _NEAREST)
    )


def comparisons_behind(flow: Flow, predicate: int) -> Iterator[Step]:
    """Yield the comparisons that make a predicate, also by flags `0.0` and `1.0`."""

    def decides(step: Step) -> bool:
        makers = map(flow.producer, step.operands)
        is_of_flags = any(maker and maker.primitive == "select_n" for maker in makers)
        return step.primitive in DECIDES | {"select_n"} or (
            step.primitive in COMPARISONS and is_of_flags
        )

    return (
        step for step in flow.backwards(predicate, decides, 30) if step.primitive in COMPARISONS
    )


def selections(flow: Flow, step: Step, most: int = 50) -> Iterator[Step]:
    """Yield the selections that have a result, or what `most` equations make of it, as a case."""
    for read, user in flow.forwards(step.results[0], _NEAR, most):
        if user.primitive == "select_n" and read != flow.of(user.operands[0]):
            yield user
