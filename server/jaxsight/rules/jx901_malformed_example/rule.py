"""JX901: a syntax error in a line of example inputs."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX901",
    "malformed-example",
    "Syntax error in example inputs.",
)
