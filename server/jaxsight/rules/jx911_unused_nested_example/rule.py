"""JX911: Example inputs of a nested function that no trace calls."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX911",
    "unused-nested-example",
    "Example inputs of a nested function that no trace calls.",
    severity="information",
)
