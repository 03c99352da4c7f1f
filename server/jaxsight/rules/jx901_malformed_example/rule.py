"""JX901: A line of the example inputs cannot be read."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX901",
    "malformed-example",
    "A line of the example inputs cannot be read.",
)
