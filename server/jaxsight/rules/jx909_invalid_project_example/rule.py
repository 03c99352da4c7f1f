"""JX909: An entry of `[tool.jaxsight.examples]` is wrong."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX909",
    "invalid-project-example",
    "An entry of `[tool.jaxsight.examples]` is wrong.",
)
