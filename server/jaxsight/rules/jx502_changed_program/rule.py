"""JX502: a function compiles to something else than `jaxsight.lock` says (`check --locked`)."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    __name__,
    "A function differs from `jaxsight.lock`: kernels, memory, collectives or types.",
    always=False,
)
