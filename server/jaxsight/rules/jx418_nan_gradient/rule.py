"""JX418: a gradient that is NaN or infinite at a point that inputs reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.jx418_nan_gradient.differentiation import is_differentiated
from jaxsight.rules.jx418_nan_gradient.gradients import (
    SINGULARITIES,
    WRITTEN,
    Differentiated,
    names_called,
)
from jaxsight.rules.patterns.programs import ProgramPatterns
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.guards import has_rule, is_in_branch, is_written, selections
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
