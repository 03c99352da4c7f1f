"""JX902: A dtype that neither JAX nor NumPy knows."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX902",
    "unknown-dtype",
    "A dtype that neither JAX nor NumPy knows.",
)
