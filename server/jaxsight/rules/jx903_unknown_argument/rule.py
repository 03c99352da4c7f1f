"""JX903: An example for a parameter that the function does not have."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX903",
    "unknown-argument",
    "An example for a parameter that the function does not have.",
)
