"""JX904: A parameter without default has no example."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX904",
    "missing-argument",
    "A parameter without default has no example.",
)
