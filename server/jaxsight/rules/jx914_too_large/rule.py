"""JX914: a file or statement that is too large to be analyzed."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX914",
    "too-large",
    "File or statement is too large to be analyzed.",
    severity="information",
)
