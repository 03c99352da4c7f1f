"""JX914: A file or a statement is too large to be analyzed."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX914",
    "too-large",
    "A file or a statement is too large to be analyzed.",
    severity="information",
)
