"""JX903: an example for a parameter that the function does not have."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX903",
    "unknown-argument",
    "Example for a parameter that the function does not have.",
)
