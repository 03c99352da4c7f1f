"""Whether an equation is differentiated: by the program itself, or by the module's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import is_flat
from jaxsight.rules.program.steps import is_inexact
from jaxsight.rules.program.view import ProgramView
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
    """The primitives that compute it where the function is written, of its operands or result."""
    of_result: bool = False
    near: frozenset[str] = frozenset()
    """The primitives between the operands and these."""

    def is_in(self, flow: Flow, step: Step) -> bool:
        """Whether the factor of an equation's derivative is in the program."""
        return any(
            user.primitive in self.made and user.path != step.path and user.span == step.span
            for number in (step.results if self.of_result else step.operands)
            for _, user in flow.forwards(number, self.near, 20)
        )


_DIVISION = frozenset({"div"})
_SQUARES = frozenset({"square", "mul", "integer_pow", "add", "neg"})
_OF_INVERSE = _Factor(frozenset({"rsqrt", "sqrt"}), near=_SQUARES | {"one_minus_square", "sub"})
_FACTORS = {
    "sqrt": _Factor(_DIVISION, of_result=True),
    "rsqrt": _Factor(_DIVISION, of_result=True),
    "pow": _Factor(frozenset({"pow"})),
    "cbrt": _Factor(frozenset({"integer_pow"}), of_result=True),
    "acos": _OF_INVERSE,
    "asin": _OF_INVERSE,
    "acosh": _OF_INVERSE,
    "atan2": _Factor(_DIVISION, near=_SQUARES),
}
"""By primitive the factor of its derivative, by JAX's rules in `jax/_src/lax/lax.py`."""
