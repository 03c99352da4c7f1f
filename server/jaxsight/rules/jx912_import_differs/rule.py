"""JX912: A function traces to a different program when its module is imported."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX912",
    "import-differs",
    "A function traces to a different program when its module is imported.",
    always=False,
)
