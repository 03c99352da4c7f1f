"""JX900: A setting of the project is wrong."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX900",
    "invalid-setting",
    "A setting of the project is wrong.",
)
