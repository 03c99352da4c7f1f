"""JX501: a condition of a contract (`Expect (h100): kernels <= 3`) does not hold on its target."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX501",
    "broken-contract",
    "A condition of an `Expect` line does not hold on its target.",
)
