"""Find the rule that explains an exception that ended a trace."""

from __future__ import annotations

from jaxsight.rules import RULES
from jaxsight.rules.jx400_trace_error import rule as trace_error
from jaxsight.rules.jx905_failing_example import rule as failing_example
from jaxsight.rules.jx906_unknown_size import rule as unknown_size
from jaxsight.rules.jx907_conflicting_example import rule as conflicting_example
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.observations import Failure

_OF_MESHES = {
    "jaxsight.UnknownAxis": unknown_size.RULE,
    "jaxsight.UnevenAxis": conflicting_example.RULE,
    "jaxsight.NotAMesh": failing_example.RULE,
}
"""The rules of failures about the mesh of example inputs, whose note is the help."""


def explain(failure: Failure, expression: str = "", line: str = "") -> tuple[Rule, Violation]:
    """Return the first rule that recognizes a failure, with what it says.

    Args:
        failure: the exception; its `stage` says where it came from.
        expression: the user's source text at the innermost frame, empty when unknown.
        line: the line that it begins on, empty when unknown.
    """
    if failure.stage == "inputs" and (rule := _OF_MESHES.get(failure.type)) is not None:
        return rule, Violation(failure.message, help=next(iter(failure.notes), ""))
    if failure.stage == "inputs":
        return failing_example.RULE, failing_example.explain(failure)
    if failure.stage in ("execute", "trace"):
        for rule in RULES.values():
            violation = rule.explain(failure, expression, line) if rule.explain else None
            if violation is not None:
                return rule, violation
    return trace_error.RULE, trace_error.explain(failure)
