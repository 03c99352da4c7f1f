"""JX306: A call has a function compiled for many types or values."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX306",
    "repeated-recompilation",
    "A call has a function compiled for many types or values.",
    severity="warning",
    always=False,
)
