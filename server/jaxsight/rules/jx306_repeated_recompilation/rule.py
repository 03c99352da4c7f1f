"""JX306: a call site has a function compiled for many types or static values."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX306",
    "repeated-recompilation",
    "Call site triggers repeated recompilation.",
    severity="warning",
    always=False,
)
