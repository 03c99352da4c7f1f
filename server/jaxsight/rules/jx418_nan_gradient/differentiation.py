"""Whether an equation is differentiated: by the program itself, or by the module's text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import is_flat
from jaxsight.rules.program.steps import is_inexact, parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal, maker_of
from jaxsight.wire.program import Step


def is_differentiated(view: ProgramView, step: Step) -> bool:
    """Whether the program, or the text of the module, differentiates an equation."""
    flow = view.flow
    if _FACTORS[step.primitive].is_in(flow, step):
        users = [
            user
            for user in flow.used_by(step.results[0])
            if user.span != step.span or user.primitive == "stop_gradient"
        ]
        return not users or not all(is_flat(flow, user) for user in users)
    return bool(view.differentiated) and any(
        _depends_on_parameter(view, operand) for operand in step.operands
    )


def _depends_on_parameter(view: ProgramView, number: int) -> bool:
    """Whether a value depends on a parameter that the module differentiates by."""
    flow = view.flow
    sources = flow.sources(number, lambda step: not is_flat(flow, step), 500)
    return any(
        number in flow.inputs
        and is_inexact(flow.value(number))
        and re.split(r"[\[.]", flow.values[number].said)[0] in view.differentiated
        for number in sources or ()
    )


@dataclass(frozen=True, slots=True)
class _Factor:
    """What a program has where it has the factor of a function's derivative."""

    made: frozenset[str]
    """The primitives that compute it, of the function's operands or its result."""
    of_result: bool = False
    near: frozenset[str] = frozenset()
    """The primitives between the operands and these."""
    at_once: bool = True
    """Whether it is written where the function is."""
    is_it: Callable[[Flow, Step, Step], bool] = lambda flow, step, user: True
    """Whether one of these equations is the factor, given the function's own before it."""

    def is_in(self, flow: Flow, step: Step) -> bool:
        """Whether the factor of an equation's derivative is in the program."""
        return any(
            user.primitive in self.made
            and user.path != step.path
            and (user.span == step.span or not self.at_once)
            and self.is_it(flow, step, user)
            for number in (step.results if self.of_result else step.operands)
            for _, user in flow.forwards(number, self.near, 20)
        )


def _is_power_less_1(flow: Flow, step: Step, user: Step) -> bool:
    """Whether a power has an exponent that is 1 less."""
    less = maker_of(flow, user.operands[1])
    return less is not None and less.primitive == "sub" and literal(flow, less.operands[1]) == 1


_SQUARES = frozenset({"square", "mul", "integer_pow", "add", "neg"})
_OF_INVERSE = _Factor(frozenset({"rsqrt", "sqrt"}), near=_SQUARES | {"one_minus_square", "sub"})
_DIVISION = frozenset({"div"})
_FACTORS = {
    "sqrt": _Factor(
        _DIVISION, True, is_it=lambda flow, _, div: literal(flow, div.operands[0]) == 0.5
    ),
    "rsqrt": _Factor(
        _DIVISION,
        True,
        at_once=False,
        is_it=lambda flow, step, div: flow.of(div.operands[1]) == flow.of(step.operands[0]),
    ),
    "pow": _Factor(frozenset({"pow"}), at_once=False, is_it=_is_power_less_1),
    "cbrt": _Factor(
        frozenset({"integer_pow"}),
        True,
        at_once=False,
        is_it=lambda flow, _, power: parameter(power, "y") == -2,
    ),
    "acos": _OF_INVERSE,
    "asin": _OF_INVERSE,
    "acosh": _OF_INVERSE,
    "atan2": _Factor(_DIVISION, near=_SQUARES),
}
"""By primitive the factor of its derivative, by JAX's rules in `jax/_src/lax/lax.py`."""
