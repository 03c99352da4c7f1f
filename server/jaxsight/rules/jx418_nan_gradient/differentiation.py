"""Whether an equation is differentiated: by the program itself, or by the module's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal, maker_of
from jaxsight.wire.primitives import COMPARISONS
from jaxsight.wire.program import Step

_FLAT = frozenset(
    {"stop_gradient", "round", "floor", "ceil", "sign", "argmax", "argmin", "is_finite"}
)  # fmt: skip


def is_differentiated(view: ProgramView, step: Step) -> bool:
    """Whether the program, or the text of the module, differentiates an equation."""
    flow = view.flow
    if _FACTORS[step.primitive](flow, step):
        users = [
            user
            for user in flow.used_by(step.results[0])
            if user.span != step.span or user.primitive == "stop_gradient"
        ]
        return not users or not all(user.primitive in _FLAT | COMPARISONS for user in users)
    return bool(view.differentiated) and any(
        _depends_on_parameter(view, operand) for operand in step.operands
    )


def _depends_on_parameter(view: ProgramView, number: int) -> bool:
    """Whether a value depends on a parameter that the module differentiates by."""
    flow = view.flow
    sources = flow.sources(
        number, lambda step: step.primitive not in _FLAT and _inexact(flow, step.results[0]), 500
    )
    return any(
        number in flow.inputs
        and _inexact(flow, number)
        and _root(flow.values[number].said) in view.differentiated
        for number in sources or ()
    )


def _root(name: str) -> str:
    """Return the parameter that an input belongs to: `p` for `p['w'][0]`."""
    return name.split("[")[0].split(".")[0]


def _inexact(flow: Flow, number: int) -> bool:
    return flow.value(number).dtype.startswith(("float", "bfloat"))


def _made_of(flow: Flow, number: int, primitive: str, *more_primitives: str) -> Iterator[Step]:
    for user in flow.used_by(number):
        if user.primitive == primitive or user.primitive in more_primitives:
            yield user


def _has_root_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides 0.5 by a root, as the derivative rule of `sqrt` does."""
    return any(
        user.operands[1:] and literal(flow, user.operands[0]) == 0.5
        for user in _made_of(flow, step.results[0], "div")
        if user.span == step.span
    )


def _has_inverse_root_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides an inverse root by its operand."""
    operand = flow.of(step.operands[0])
    return any(
        flow.of(user.operands[1]) == operand for user in _made_of(flow, step.results[0], "div")
    )


def _has_power_factor(flow: Flow, step: Step) -> bool:
    """Whether the program has the same power with an exponent that is less by 1."""
    for user in _made_of(flow, step.operands[0], "pow"):
        less = maker_of(flow, user.operands[1])
        if user.path != step.path and less is not None and less.primitive == "sub":
            return literal(flow, less.operands[1]) == 1
    return False


def _has_cube_root_factor(flow: Flow, step: Step) -> bool:
    users = _made_of(flow, step.results[0], "integer_pow")
    return any(parameter(user, "y") == -2 for user in users)


def _has_inverse_factor(flow: Flow, step: Step) -> bool:
    """Whether the program has the inverse root of something of the operand, at the same place."""
    near = {"one_minus_square", "square", "mul", "integer_pow", "sub", "add", "neg"}
    for _, user in flow.forwards(step.operands[0], near, 20):
        if user.primitive in ("rsqrt", "sqrt") and user.span == step.span:
            return user.path != step.path
    return False


def _has_angle_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides by the sum of the squares of both operands, at that place."""
    near = {"square", "mul", "integer_pow", "add", "neg"}
    return any(
        user.primitive == "div" and user.span == step.span
        for operand in step.operands
        for _, user in flow.forwards(operand, near, 20)
    )


_FACTORS: dict[str, Callable[[Flow, Step], bool]] = {
    "sqrt": _has_root_factor,
    "rsqrt": _has_inverse_root_factor,
    "pow": _has_power_factor,
    "cbrt": _has_cube_root_factor,
    "acos": _has_inverse_factor,
    "asin": _has_inverse_factor,
    "acosh": _has_inverse_factor,
    "atan2": _has_angle_factor,
}
"""By primitive whether the program has the factor of its derivative, by JAX's rules in
`jax/_src/lax/lax.py`.
"""
