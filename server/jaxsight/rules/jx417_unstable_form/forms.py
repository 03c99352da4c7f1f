"""Which expressions are unstable, and what to write in their place."""

from __future__ import annotations

from jaxsight.rules.jx417_unstable_form.differences import Difference
from jaxsight.rules.jx417_unstable_form.logarithms import Logarithm
from jaxsight.rules.jx417_unstable_form.looking import FLOATS, Form
from jaxsight.rules.jx417_unstable_form.quotients import Quotient
from jaxsight.rules.program.bounds import Known
from jaxsight.rules.program.view import Reading
from jaxsight.wire.program import Step


def of(reading: Reading, step: Step, known: Known) -> Form | None:
    """Return the unstable form that an equation completes, if any."""
    floats = FLOATS.get(reading.flow.value(step.results[0]).dtype)
    if floats is None:
        return None
    match step.primitive:
        case "log" | "log2":
            return Logarithm(reading, known, step, floats).logarithm()
        case "log1p":
            return Logarithm(reading, known, step, floats).log1p()
        case "sub" | "add":
            return Difference(reading, known, step, floats).difference()
        case _:
            return Quotient(reading, known, step, floats).quotient()
