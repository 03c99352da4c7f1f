"""Errors of JAX as a rule's table: the pattern of JAX's words, and ours.

JAX's messages are text for people, and change between releases: patterns match the beginning of a
message, and what follows only where it is needed. Those of JAX 0.8 to 0.12 are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from jaxsight.rules.failure_text import is_a
from jaxsight.rules.rule import Violation
from jaxsight.rules.wording import MOST, MOST_QUOTED, cut, quoted
from jaxsight.wire.observations import Failure

Explainer = Callable[[re.Match[str], Failure, str], Violation | None]
"""Takes the match, the failure and the user's expression."""


class ErrorTable:
    """The errors that a rule explains, in order: the first that fits is taken.

    Args:
        types: the bare names of their classes, or of bases of these.
    """

    def __init__(self, *types: str) -> None:
        self._types = types
        self._rows: list[tuple[str, Explainer]] = []

    def explain(self, failure: Failure, expression: str, line: str) -> Violation | None:
        """Return what the table says of a failure; `None` if it has no such error."""
        if not is_a(failure, *self._types):
            return None
        for pattern, explainer in self._rows:
            match = re.match(pattern, failure.message, re.DOTALL)
            if match is not None:
                violation = explainer(match, failure, expression)
                return _fitted(violation) if violation is not None else None
        return None

    def explains(self, pattern: str) -> Callable[[Explainer], Explainer]:
        """Have a function explain the errors whose messages begin with a pattern."""

        def add(explainer: Explainer) -> Explainer:
            self._rows.append((pattern, explainer))
            return explainer

        return add

    def says(self, pattern: str, message: str, *, help: str = "", note: str = "") -> None:
        """Explain the errors whose messages begin with a pattern, by templates of its groups.

        `{shape}` is the text of a group, `{shape:q}` has backticks and at most 40 characters,
        `{shape:q20}` 20. `expression` is the user's.
        """

        def fill(match: re.Match[str], failure: Failure, expression: str) -> Violation:
            groups = {**match.groupdict(""), "expression": expression}
            parts = {name: _Part(text.strip()) for name, text in groups.items()}
            return Violation(
                message.format_map(parts),
                help=help.format_map(parts),
                notes=(note.format_map(parts),) if note else (),
            )

        self._rows.append((pattern, fill))

    def table(self, rows: str) -> None:
        """Explain errors by rows of text, as `says` does.

        A row is a pattern with lines below it, indented by four: the message, then perhaps
        `help: …` and `note: …`. A line that is indented by eight continues the one before.
        """
        for row in re.split(r"\n(?=\S)", rows.strip("\n")):
            pattern, message, *others = row.replace("\n        ", " ").split("\n    ")
            self.says(pattern, message, **dict(other.split(": ", 1) for other in others))


def _fitted(violation: Violation) -> Violation:
    """Return a violation whose message is cut if long types or names make it too long.

    The first note then has all of it.
    """
    if len(violation.message) <= MOST:
        return violation
    notes = (violation.message, *violation.notes)
    return replace(violation, message=cut(violation.message, MOST), notes=notes)


class _Part(str):
    """A part of a message, which a template may quote."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if not spec.startswith("q"):
            return str(self)
        return quoted(self, most=int(spec[1:] or MOST_QUOTED))
