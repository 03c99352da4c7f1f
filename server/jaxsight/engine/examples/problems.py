"""What is wrong with example inputs: one `Problem` per wrong token, with the code that names its kind.

The codes' names and pages are in the catalogue of all findings; here stands only how bad each is. JX905 (an
expression raises an error) is not made here: nothing in this package evaluates anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from jaxsight.engine.answers import Severity
from jaxsight.engine.text import Range

MALFORMED = "JX901"
UNKNOWN_DTYPE = "JX902"
UNKNOWN_ARGUMENT = "JX903"
MISSING_ARGUMENT = "JX904"
DOES_NOT_EVALUATE = "JX905"
UNKNOWN_SIZE = "JX906"
CONFLICT = "JX907"
MALFORMED_EXPECT = "JX908"
PROJECT_EXAMPLE = "JX909"

SEVERITIES = {
    MALFORMED: Severity.ERROR,
    UNKNOWN_DTYPE: Severity.ERROR,
    UNKNOWN_ARGUMENT: Severity.ERROR,
    MISSING_ARGUMENT: Severity.ERROR,
    DOES_NOT_EVALUATE: Severity.ERROR,
    UNKNOWN_SIZE: Severity.ERROR,
    CONFLICT: Severity.ERROR,
    # A contract that cannot be read does not keep the function from being traced.
    MALFORMED_EXPECT: Severity.WARNING,
    PROJECT_EXAMPLE: Severity.ERROR,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A wrong token and what was expected there.

    `range` is relative to the function's chunk, as all ranges of `Function` are; that of a JX909 is relative to the
    project example's own text.
    """

    code: str
    severity: Severity
    range: Range
    message: str


class Malformed(Exception):
    """Reading stopped at a problem; the reader of the next line goes on."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def problem(code: str, range: Range, message: str) -> Problem:
    """A problem with its code's severity."""
    return Problem(code, SEVERITIES[code], range, message)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` is probably a slip of."""
    exact = {name.lower(): name for name in known}
    letters = sorted(word.lower())
    for lower, name in exact.items():
        if sorted(lower) == letters:
            # Swapped letters are the commonest slip, and `i23` is otherwise nearer to `i2` than to `i32`.
            return name
    found = difflib.get_close_matches(word.lower(), exact, n=1, cutoff=0.6)
    return exact[found[0]] if found else None
