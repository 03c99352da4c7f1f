"""Findings: violations of rules at their places in the text of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from jaxsight.rules import RULES
from jaxsight.source.text import Range


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Place:
    """Another place that a finding refers to."""

    path: str
    range: Range
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's finding."""

    code: str
    severity: Severity
    range: Range
    message: str
    """The problem in one clause, without a full stop."""
    url: str = ""
    """The rule's page, or JAX's own page on the error."""
    related: tuple[Place, ...] = ()
    stale: bool = False
    help: str = ""
    """An instruction that fixes it."""
    notes: tuple[str, ...] = ()
    """Facts that explain it."""
    data: object = field(default=None, compare=False)
    """Figures and names for the rule's fix, in a class of the rule's own."""
    assumed: str = ""
    """The inputs that it was found with, if nobody wrote them; a note says so, too."""

    def repeats(self, other: Finding) -> bool:
        """Return whether another finding is this one, or says the same of the same line."""
        same_line = self.range.start.line == other.range.start.line
        is_same = self.range == other.range or (same_line and self.message == other.message)
        return is_same and self.code == other.code

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, the help and the notes, for clients that show plain text."""
        helps = (f"help: {self.help}",) if self.help else ()
        return (self.message, *helps, *(f"note: {note}" for note in self.notes))


def finding_of(
    code: str,
    range: Range,
    message: str,
    *,
    severity: Severity | None = None,
    help: str = "",
    notes: tuple[str, ...] = (),
    data: object = None,
    related: tuple[Place, ...] = (),
    stale: bool = False,
) -> Finding:
    """Return a finding of a rule, by default with the rule's severity."""
    rule = RULES[code]
    severity = severity or Severity(rule.severity)
    return Finding(code, severity, range, message, rule.url, related, stale, help, notes, data)
