"""JX910: a `# jaxsight: ignore` comment that suppresses nothing."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX910",
    "unused-ignore",
    "`jaxsight: ignore` comment that suppresses nothing.",
    severity="warning",
)
