"""JX913: functions that could not be verified by importing their module."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX913",
    "import-not-verified",
    "Functions could not be verified by importing the module.",
    severity="information",
    always=False,
)
