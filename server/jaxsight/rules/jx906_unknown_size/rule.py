"""JX906: an undefined or invalid size in example inputs."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX906",
    "unknown-size",
    "Undefined or invalid size in example inputs.",
)
