"""JX910: A `# jaxsight: ignore` that leaves nothing out."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX910",
    "unused-ignore",
    "A `# jaxsight: ignore` that leaves nothing out.",
    severity="warning",
)
