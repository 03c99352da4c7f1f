"""JX904: a required parameter without example."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX904",
    "missing-argument",
    "Required parameter without example.",
)
