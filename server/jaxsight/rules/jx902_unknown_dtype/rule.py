"""JX902: an unknown dtype or key implementation in example inputs."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX902",
    "unknown-dtype",
    "Unknown dtype or key implementation in example inputs.",
)
