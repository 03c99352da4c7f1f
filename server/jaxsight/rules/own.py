"""The rules that the engine itself reports: what is wrong with settings, example inputs, comments.

Their folders have pages and cases, and no `rule.py`: nothing is looked for.
"""

from __future__ import annotations

from jaxsight.rules.rule import Rule

_RULES = (
    Rule("JX900", "invalid-setting", "Invalid or unknown setting in `[tool.jaxsight]`."),
    Rule("JX901", "malformed-example", "Syntax error in example inputs."),
    Rule("JX902", "unknown-dtype", "Unknown dtype or key implementation in example inputs."),
    Rule("JX903", "unknown-argument", "Example for a parameter that the function does not have."),
    Rule("JX904", "missing-argument", "Required parameter without example."),
    Rule(
        "JX906",
        "unknown-size",
        "Undefined or invalid size or mesh axis in example inputs.",
        failures=("jaxsight.UnknownAxis",),
    ),
    Rule(
        "JX907",
        "conflicting-example",
        "Duplicate or contradictory example inputs.",
        failures=("jaxsight.UnevenAxis",),
    ),
    Rule("JX908", "malformed-expect", "Syntax error in an `Expect` line."),
    Rule("JX909", "invalid-project-example", "Invalid entry in `[tool.jaxsight.examples]`."),
    Rule(
        "JX910",
        "unused-ignore",
        "`jaxsight: ignore` comment that suppresses nothing.",
        severity="warning",
    ),
    Rule(
        "JX911",
        "unused-nested-example",
        "Example inputs of a nested function that is never called.",
        severity="information",
    ),
    Rule("JX912", "import-differs", "Program differs when the module is imported.", always=False),
    Rule(
        "JX913",
        "import-not-verified",
        "Functions could not be verified by importing the module.",
        severity="information",
        always=False,
    ),
    Rule(
        "JX914",
        "too-large",
        "File or statement is too large to be analyzed.",
        severity="information",
    ),
)
OWN = {rule.code: rule for rule in _RULES}
"""By code."""
