"""The rules that the engine itself reports: what is wrong with settings, example inputs, comments.

Their folders have pages and cases, and no `rule.py`: nothing is looked for.
"""

from __future__ import annotations

from jaxsight.rules.rule import Rule

_RULES = (
    Rule("jx900_invalid_setting", "Invalid or unknown setting in `[tool.jaxsight]`."),
    Rule("jx901_malformed_example", "Syntax error in example inputs."),
    Rule("jx902_unknown_dtype", "Unknown dtype or key implementation in example inputs."),
    Rule("jx903_unknown_argument", "Example for a parameter that the function does not have."),
    Rule("jx904_missing_argument", "Required parameter without example."),
    Rule(
        "jx906_unknown_size",
        "Undefined or invalid size or mesh axis in example inputs.",
        failures=("jaxsight.UnknownAxis",),
    ),
    Rule(
        "jx907_conflicting_example",
        "Duplicate or contradictory example inputs.",
        failures=("jaxsight.UnevenAxis",),
    ),
    Rule("jx908_malformed_expect", "Syntax error in an `Expect` line."),
    Rule("jx909_invalid_project_example", "Invalid entry in `[tool.jaxsight.examples]`."),
    Rule(
        "jx910_unused_ignore",
        "`jaxsight: ignore` comment that suppresses nothing.",
        severity="warning",
    ),
    Rule(
        "jx911_unused_nested_example",
        "Example inputs of a nested function that is never called.",
        severity="information",
    ),
    Rule("jx912_import_differs", "Program differs when the module is imported.", always=False),
    Rule(
        "jx913_import_not_verified",
        "Functions could not be verified by importing the module.",
        severity="information",
        always=False,
    ),
    Rule(
        "jx914_too_large",
        "File or statement is too large to be analyzed.",
        severity="information",
    ),
)
OWN = {rule.code: rule for rule in _RULES}
"""By code."""
