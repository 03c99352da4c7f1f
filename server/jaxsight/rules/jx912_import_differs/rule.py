"""JX912: a function whose program differs when its module is imported."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX912",
    "import-differs",
    "Program differs when the module is imported.",
    always=False,
)
