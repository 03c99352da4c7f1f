"""JX909: an invalid entry in `[tool.jaxsight.examples]`."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX909",
    "invalid-project-example",
    "Invalid entry in `[tool.jaxsight.examples]`.",
)
