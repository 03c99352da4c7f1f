"""The remedies of all rules that have one, by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import signature

from jaxsight.rules import RULES, Table
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Remedy

FIXES: Mapping[str, Remedy] = Table(
    lambda: {code: rule.remedy for code, rule in RULES.items() if rule.remedy is not None}
)


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Return the changes to try for a finding, the best first."""
    propose, data = FIXES[context.finding.code].propose, context.finding.data
    if len(signature(propose).parameters) == 1:
        return propose(context)
    return propose(context, data) if data is not None else iter(())
