"""JX501: a contract of the docstring (`Expect (h100): kernels <= 3`) does not hold on its target."""

from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX501",
    "broken-contract",
    "An `Expect` line of the docstring does not hold on its target.",
)
