"""JX501: a condition of a contract (`Expect (h100): kernels <= 3`) does not hold on its target."""

from jaxsight.rules.rule import Rule

RULE = Rule(__name__, "A condition of an `Expect` line does not hold on its target.")
