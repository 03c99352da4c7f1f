"""JX908: An `Expect` line cannot be read."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX908",
    "malformed-expect",
    "An `Expect` line cannot be read.",
)
