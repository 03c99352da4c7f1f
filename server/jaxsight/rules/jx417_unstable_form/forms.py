"""Which expressions are unstable, and what to write in their place."""

from __future__ import annotations

from jaxsight.rules.jx417_unstable_form.differences import Difference
from jaxsight.rules.jx417_unstable_form.logarithms import Logarithm
from jaxsight.rules.jx417_unstable_form.look import FLOATS, Form
from jaxsight.rules.jx417_unstable_form.quotients import Quotient
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.view import ProgramView
from jaxsight.wire.program import Step


def of(view: ProgramView, step: Step, facts: KnownValues) -> Form | None:
    """Return the unstable form that an equation completes, if any."""
    floats = FLOATS.get(view.flow.value(step.results[0]).dtype)
    if floats is None:
        return None
    match step.primitive:
        case "log" | "log2":
            return Logarithm(view, facts, step, floats).logarithm()
        case "log1p":
            return Logarithm(view, facts, step, floats).log1p()
        case "sub" | "add":
            return Difference(view, facts, step, floats).difference()
        case _:
            return Quotient(view, facts, step, floats).quotient()
