"""JX101: a large array is captured by closure, and becomes part of the program."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.fixing.constants import CapturedArray, captured, generated_or_passed
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import size

RULE = Rule(
    __name__,
    "Large array captured as a constant of the program.",
    severity="warning",
    once_a_line=True,
)
_COST = "which costs compile time and device memory"


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Find captured arrays of a mebibyte or more, where each is first used."""
    for value, users in captured(view):
        equal_to = value.said if view.exact else ""
        yield Violation(
            f"array of {size(value.bytes)} captured as a constant",
            users[0].path,
            help="pass it as an argument, or build it inside the function with "
            f"`{equal_to or 'jnp'}`",
            notes=(f"{value.text} is embedded in the executable, {_COST}",),
            data=CapturedArray(value.text, equal_to),
            related=tuple((user.path, "also used here") for user in users[1:4]),
        )


# The fix: generate a captured array where it is used, or pass it as an argument.

RULE.fixes(
    "`jnp` instead of `np`; an equal expression such as `jnp.arange(…)`; an argument (unsafe)",
    timed=True,
)(generated_or_passed)
