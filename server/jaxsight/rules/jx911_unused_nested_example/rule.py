"""JX911: example inputs of a nested function that no traced function calls."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX911",
    "unused-nested-example",
    "Example inputs of a nested function that is never called.",
    severity="information",
)
