"""JX906: an undefined or invalid size or mesh axis in example inputs."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX906",
    "unknown-size",
    "Undefined or invalid size or mesh axis in example inputs.",
    failures=("jaxsight.UnknownAxis",),
)
