"""JX906: A size that `where` and the settings do not define."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX906",
    "unknown-size",
    "A size that `where` and the settings do not define.",
)
