"""JX907: An argument, a size or a set is given twice, or two sizes disagree."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX907",
    "conflicting-example",
    "An argument, a size or a set is given twice, or two sizes disagree.",
)
