"""JX417: an expression that overflows, underflows or cancels has a stable equivalent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.jx417_unstable_form import forms
from jaxsight.rules.jx417_unstable_form.look import Form
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule, is_in_branch
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal, maker_of
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import name_of, parsed
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step

RULE = Rule(
    "JX417",
    "unstable-form",
    "Numerically unstable form of a function that JAX has a stable one of.",
    severity="warning",
    without_inputs=True,
)

_LOGS = frozenset({"log", "log2", "log10"})
_SUMS = frozenset({"add", "exp", "reduce_sum"})
_CALLS: dict[str, frozenset[str]] = {
    "log": _LOGS,
    "log2": _LOGS,
    "log1p": frozenset({"log1p"}),
    "sub": frozenset({"subtract", "sub"}),
    "add": frozenset({"add"}),
    "div": frozenset({"divide", "true_divide", "div"}),
}
"""By primitive the functions that users write it with."""
_OPERATORS: dict[str, tuple[type[ast.operator], ...]] = {
    "sub": (ast.Sub,),
    "add": (ast.Add, ast.Sub),
    "div": (ast.Div,),
}


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own logarithms, differences and quotients that have a stable equivalent.

    Functions with derivative rules of their own (`custom_jvp`, `custom_vjp`) are trusted.
    """
    flow, facts = view.flow, KnownValues(view.flow)
    reported: set[object] = set()
    covered: set[str] = set()
    forms_found: list[tuple[Step, Form]] = []
    for step in flow.forward_steps(*_CALLS):
        if step.span in reported or not _is_candidate(flow, step):
            continue
        if not _is_written(view.quote(step.path), step.primitive):
            continue
        if has_rule(view, step) or is_in_branch(flow, step):
            continue
        form = forms.of(view, step, facts)
        if form is not None:
            reported.add(step.span)
            covered.update(form.parts)
            forms_found.append((step, form))
    for step, form in forms_found:
        if step.path not in covered:
            yield Violation(
                form.message, step.path, help=form.help, notes=form.notes, severity=form.severity
            )


def _is_candidate(flow: Flow, step: Step) -> bool:
    """Whether an equation has operands like those of a form: most have not."""
    if step.primitive not in ("add", "sub", "div"):
        return True
    if step.primitive == "add":
        return any(literal(flow, number) == -1 for number in step.operands)
    first, second = (maker_of(flow, number) for number in step.operands)
    if step.primitive == "sub":
        of_means = first is not None and first.primitive in ("div", "mul")
        return of_means or any(literal(flow, number) == 1 for number in step.operands)
    return first is not None and second is not None and second.primitive in _SUMS


def _is_written(text: str, primitive: str) -> bool:
    """Whether an expression is itself a call or an operator that the primitive is written with."""
    node = parsed(text)
    if isinstance(node, ast.Call):
        return name_of(node) in _CALLS[primitive]
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return isinstance(node.op, _OPERATORS.get(primitive, ()))
    return False
