"""JX402: a traced value outlived the function that created it."""

from __future__ import annotations

import re

from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "Traced value used outside the function that created it.")
_LEAKED = re.compile(
    r"^The function being traced when the value leaked was (?P<function>\S+) at (?P<place>.+?) "
    r"traced for (?P<transformation>\w+)",
    re.MULTILINE,
)
_CREATED = re.compile(
    r"^The leaked intermediate value was created on line (?P<place>.+?) \(", re.MULTILINE
)


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize `UnexpectedTracerError` and the report of the leak checker."""
    if error.is_a("TraceContextError") and error.failure.type.startswith("flax."):
        return Violation(
            f"{error.quoted('this function')} changes state that another trace of flax made",
            help="transform with `nnx.jit`, `nnx.grad` or `nnx.scan`, and pass the module as an "
            "argument",
            notes=("JAX's own transformations do not see that a module changes",),
            url="https://flax.readthedocs.io/en/latest/api_reference/flax.errors.html",
        )
    leak_check = error.message.startswith("Leaked ")
    if not (error.is_a("UnexpectedTracerError") or leak_check):
        return None
    notes = ["tracers leak through globals, lists, attributes and closures"]
    if leaked := _LEAKED.search(error.message):
        function, place = leaked["function"], leaked["place"]
        notes.append(
            f"it leaked from `{function}` at {place}, traced for `{leaked['transformation']}`"
        )
    if created := _CREATED.search(error.message):
        notes.append(f"it was created at {created['place']}")
    return Violation(
        f"{error.quoted('this function')} uses a tracer that leaked from another trace",
        help="return the value from the function that creates it, and pass it on as an argument",
        notes=tuple(notes),
    )
