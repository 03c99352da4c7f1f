"""JX908: a syntax error in an `Expect` line, or an unknown target."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX908",
    "malformed-expect",
    "Syntax error in an `Expect` line.",
)
