"""Find the rule that explains an exception that ended a trace."""

from __future__ import annotations

from dataclasses import replace

from jaxsight.rules import RULES
from jaxsight.rules.failure_text import jax_page
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.observations import Failure


def explain(failure: Failure, expression: str = "", line: str = "") -> tuple[Rule, Violation]:
    """Return the first rule that recognizes a failure, with what it says.

    JAX's own page, where the message links to one, takes the place of the rule's.

    Args:
        failure: the exception; its `stage` says where it came from.
        expression: the user's source text at the innermost frame, empty when unknown.
        line: the line that it begins on, empty when unknown.
    """
    rules = RULES.values()
    if failure.stage == "inputs":
        for rule in rules:
            if failure.type in rule.failures:
                return rule, Violation(failure.message, help=next(iter(failure.notes), ""))
        for rule in rules:
            if rule.explain_inputs is not None:
                return rule, rule.explain_inputs(failure)
    if failure.stage in ("execute", "trace"):
        error = RaisedError(failure, expression, line)
        for rule in rules:
            violation = rule.explain(error) if rule.explain else None
            if violation is not None:
                return rule, replace(violation, url=violation.url or jax_page(failure))
    rule = rule_of_crashes()
    assert rule.explain_any is not None
    return rule, replace(rule.explain_any(failure), url=jax_page(failure))


def rule_of_crashes() -> Rule:
    """Return the rule that reports that a trace ended without an exception that is known."""
    return next(rule for rule in RULES.values() if rule.explain_any is not None)
