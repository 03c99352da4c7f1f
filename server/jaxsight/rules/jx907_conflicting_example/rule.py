"""JX907: duplicate or contradictory example inputs."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX907",
    "conflicting-example",
    "Duplicate or contradictory example inputs.",
    failures=("jaxsight.UnevenAxis",),
)
