"""Problems of example inputs: one `Problem` per wrong token, with the code of its rule.

The rules' names and pages are in `jaxsight.rules`; this module only adds severities. JX905 (an
expression raises an error) is reported elsewhere: nothing in this package evaluates code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from jaxsight.rules import wording
from jaxsight.rules.finding import Severity
from jaxsight.source.text import Range
from jaxsight.text.inert import clause

MALFORMED = "JX901"
UNKNOWN_DTYPE = "JX902"
UNKNOWN_ARGUMENT = "JX903"
MISSING_ARGUMENT = "JX904"
UNKNOWN_SIZE = "JX906"
CONFLICT = "JX907"
MALFORMED_EXPECT = "JX908"
PROJECT_EXAMPLE = "JX909"

_LONGEST = 30
"""Characters of a quoted name or token in a message, which must not exceed `wording.MOST`."""
_NAMED = 3
"""Names that a message lists: three of that length fit."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A wrong token and what was expected there.

    `range` is relative to the function's chunk, as all ranges of `Function` are; that of a JX909
    is relative to the project example's own text.
    """

    code: str
    severity: Severity
    range: Range
    message: str
    """The problem in one clause, without a full stop."""
    help: str = ""
    """An instruction that fixes it."""


class Malformed(Exception):
    """Reading a line stopped at a problem; the lines after it are still read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def problem(code: str, range: Range, message: str, help: str = "") -> Problem:
    """Return a problem; it is a warning where the function is traced nevertheless."""
    severity = Severity.WARNING if code == MALFORMED_EXPECT else Severity.ERROR
    return Problem(code, severity, range, message, help)


def malformed(range: Range, message: str, help: str = "", code: str = MALFORMED) -> Malformed:
    """Return the error that stops reading at a problem."""
    return Malformed(problem(code, range, message, help))


def quoted(text: str) -> str:
    """Return text of the user in backticks, on one line and shortened."""
    return f"`{clause(text, _LONGEST)}`"


def listed(names: Iterable[str]) -> str:
    """Return some names for a message: `a`, `b` and 3 more."""
    words = [quoted(name) for name in names]
    if len(words) > _NAMED:
        words = [*words[: _NAMED - 1], f"{len(words) - _NAMED + 1} more"]
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def python_error(error: Exception, subject: str) -> tuple[str, str]:
    """Return message and help for an exception of Python's parser.

    Args:
        subject: the noun phrase for the invalid part, such as `Python literal`.
    """
    reason = str((error.msg if isinstance(error, SyntaxError) else None) or error)
    error_text, _, advice = clause(reason, 2 * wording.MOST).replace(". ", "; ", 1).partition("; ")
    if not error_text or error_text == "invalid syntax":
        return f"invalid {subject}", advice
    return clause(f"invalid {subject}: {error_text}", wording.MOST), advice


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the known word that `word` is probably a misspelling of."""
    exact = {name.lower(): name for name in words}
    letters = sorted(word.lower())
    for lower, name in exact.items():
        if sorted(lower) == letters:
            # Swapped letters are the most common typo, and `i23` is otherwise closer to `i2` than
            # `i32`.
            return name
    matches = difflib.get_close_matches(word.lower(), exact, n=1)
    return exact[matches[0]] if matches else None


def did_you_mean(word: str, words: Iterable[str], otherwise: str) -> str:
    """Return the help that names the nearest known word; `otherwise` if none is near."""
    near = nearest(word, words)
    return f"did you mean `{near}`?" if near else otherwise
