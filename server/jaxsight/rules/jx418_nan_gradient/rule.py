"""JX418: a gradient that is NaN or infinite at a point that inputs reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx418_nan_gradient.gradients import (
    SINGULARITIES,
    WRITTEN,
    Differentiated,
    names_called,
)
from jaxsight.rules.patterns.programs import ProgramPatterns
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule, is_flat, is_in_branch, is_written, selections
from jaxsight.rules.program.steps import is_inexact
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step

# Whether an equation is differentiated: by the program itself, or by the module's text.


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


RULE = Rule(
    "JX418",
    "nan-gradient",
    "Gradient that is NaN or infinite at a point that inputs reach.",
    severity="warning",
)


@dataclass(frozen=True, slots=True)
class Squares:
    """Says to the fix that a root is of a sum of squares."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own functions that are differentiated where they have no derivative.

    They are differentiated if the program has the factor of their derivative, or if the module's
    text differentiates the function by an argument that they depend on. Functions with derivative
    rules of their own (`custom_jvp`, `custom_vjp`) are trusted.
    """
    flow, known = view.flow, KnownValues(view.flow)
    patterns = ProgramPatterns(view)
    reported: set[object] = set()
    for step in flow.steps.values():
        if step.span in reported or not _is_written(view.quote(step.path), step.primitive):
            continue
        if not known.varies(step.operands[0]) or has_rule(view, step) or is_in_branch(flow, step):
            continue
        if not is_differentiated(view, step) or _is_selected(view, step):
            continue
        for row in SINGULARITIES:
            found = patterns.at(step, row.pattern)
            if found is not None and row.is_met(met := Differentiated(view, known, found)):
                if row.message:
                    reported.add(step.span)
                    yield Violation(
                        met.filled(row.message),
                        step.path,
                        help=met.filled(row.help),
                        notes=tuple(map(met.filled, row.notes)),
                        data=Squares() if row.of_squares else None,
                        severity=row.severity,
                    )
                break


def _is_written(text: str, primitive: str) -> bool:
    """Whether an expression is itself a call or a power that the primitive is written with."""
    written = WRITTEN.get(primitive, frozenset())
    is_power = primitive in ("sqrt", "pow") and is_written(text, (), (ast.Pow,))
    return is_power or not written.isdisjoint(names_called(text))


def _is_selected(view: ProgramView, step: Step) -> bool:
    """Whether the user selects the result by its operand: that is JX405's to report."""
    flow = view.flow
    own = flow.sources(step.operands[0], lambda step: bool(step.operands), 200) or set()
    for user in selections(flow, step, 12):
        if user.backward or not view.wrote(user.path, "where", "select"):
            continue
        if all(step in flow.backwards(case, lambda _: True) for case in user.operands[1:]):
            continue  # both cases have it: the selection hides nothing
        compared = flow.sources(user.operands[0], lambda step: bool(step.operands), 200) or set()
        if compared & own:
            return True
    return False


# The fix: guard the root of a sum of squares with two `where`.

_AXES = frozenset({"axis", "keepdims"})


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `where(s > 0, sqrt(where(s > 0, s, 1.0)), 0.0)` for `sqrt(s)` and for norms."""
    if not isinstance(context.finding.data, Squares) or not context.jnp:
        return
    for call in context.find(ast.Call):
        if (squares := _squares(context, call)) is None:
            continue
        if (statement := context.statement(call)) is None:
            return
        name, jnp = context.fresh("squares"), context.jnp
        root = f"{jnp}.sqrt({jnp}.where({name} > 0, {name}, 1.0))"
        yield Candidate(
            "Guard the root with two `where`",
            (
                context.before(statement, f"{name} = {squares}"),
                context.replace(call, f"{jnp}.where({name} > 0, {root}, 0.0)"),
            ),
            same=False,  # NaN is no longer what it was
        )
        return


def _squares(context: FixContext, call: ast.Call) -> str | None:
    """Return the text of the sum of squares that a call takes the root of."""
    function = context.called(call.func)
    if function in ("jax.numpy.sqrt", "jax.lax.sqrt") and len(call.args) == 1:
        return context.on_its_own(call.args[0])
    if function != "jax.numpy.linalg.norm" or len(call.args) != 1:
        return None
    if any(key.arg not in _AXES for key in call.keywords):
        return None
    keywords = "".join(f", {key.arg}={context.text(key.value)}" for key in call.keywords)
    return f"{context.jnp}.sum({context.operand(call.args[0])} ** 2{keywords})"


REMEDY = Remedy.correcting("two `where` around the root of a sum of squares", candidates)
