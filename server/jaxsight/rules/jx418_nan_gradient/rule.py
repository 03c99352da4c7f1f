"""JX418: a gradient that is NaN or infinite at a point that inputs reach."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.jx418_nan_gradient.differentiation import is_differentiated
from jaxsight.rules.jx418_nan_gradient.functions import is_written
from jaxsight.rules.jx418_nan_gradient.gradients import VIOLATIONS, Differentiated
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.guards import has_rule, is_in_branch, selections
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step

RULE = Rule(
    "JX418",
    "nan-gradient",
    "Gradient that is NaN or infinite at a point that inputs reach.",
    severity="warning",
)


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own functions that are differentiated where they have no derivative.

    They are differentiated if the program has the factor of their derivative, or if the module's
    text differentiates the function by an argument that they depend on. Functions with derivative
    rules of their own (`custom_jvp`, `custom_vjp`) are trusted.
    """
    flow, facts = view.flow, KnownValues(view.flow)
    reported: set[object] = set()
    for step in flow.steps.values():
        look = VIOLATIONS.get(step.primitive)
        if look is None or step.span in reported:
            continue
        if not is_written(view.quote(step.path), step.primitive):
            continue
        if not facts.varies(step.operands[0]) or has_rule(view, step):
            continue
        if not is_differentiated(view, step) or _is_selected(view, step):
            continue
        if is_in_branch(flow, step):
            continue
        violation = look(Differentiated(view, facts, step))
        if violation is not None:
            reported.add(step.span)
            yield violation


def _is_selected(view: ProgramView, step: Step) -> bool:
    """Whether the user selects the result by its operand: that is JX405's to report."""
    flow = view.flow
    own = flow.sources(step.operands[0], lambda step: bool(step.operands), 200) or set()
    for user in selections(flow, step, 12):
        if user.backward or not view.wrote(user.path, "where", "select"):
            continue
        compared = flow.sources(user.operands[0], lambda step: bool(step.operands), 200) or set()
        if compared & own:
            return True
    return False
