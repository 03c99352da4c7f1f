"""JX900: an invalid value or an unknown name in `[tool.jaxsight]`."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX900",
    "invalid-setting",
    "Invalid or unknown setting in `[tool.jaxsight]`.",
)
