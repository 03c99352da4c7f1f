"""What the engine answers, in editor terms but without LSP: plain data that `lsp/` and `cli/`
convert.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from jaxsight.engine.text import Edit, Range
from jaxsight.rules import RULES


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Hover:
    """`markdown` for the range that it speaks of; `stale` when it tells of the text before the last
    edits.
    """

    range: Range
    markdown: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    """An inlay hint after the range's end; `stale` when it describes the text before the last
    edits, as `label` marks.
    """

    range: Range
    label: str
    tooltip: str = ""
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Caveat:
    """Why an answer may differ from that of the imported module: the statement at `range`, and one
    clause about it.
    """

    range: Range
    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere else that a finding speaks of."""

    path: str
    range: Range
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule reports."""

    code: str
    severity: Severity
    range: Range
    message: str
    """What is wrong: one clause, without a full stop."""
    url: str = ""
    """The rule's page, or JAX's own page on the error."""
    related: tuple[Place, ...] = ()
    stale: bool = False
    help: str = ""
    """What to do."""
    notes: tuple[str, ...] = ()
    """Facts that explain it."""
    data: object = field(default=None, compare=False)
    """Figures and names for the rule's fix, in a class of the rule's own."""

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
) -> Finding:
    """Return a finding of a rule, with the rule's severity unless another one is given."""
    rule = RULES[code]
    severity = severity or Severity(rule.severity)
    return Finding(code, severity, range, message, rule.url, help=help, notes=notes)


@dataclass(frozen=True, slots=True)
class Lens:
    """A line above a function: `title`; a click runs `command` with `arguments`."""

    range: Range
    title: str
    command: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """A code action: its title, LSP-style kind (`quickfix`, `refactor.rewrite…`) and what it does
    when it is chosen.

    That is to edit this document, or to run `command` with `arguments`. Edits that take long to
    make are left out: then `pending` is what `Session.resolve` makes them of.
    """

    title: str
    kind: str
    edits: tuple[Edit, ...] = ()
    command: str = ""
    arguments: tuple[str, ...] = ()
    pending: str = ""
    finding: Finding | None = None
    """What a quick fix fixes."""
    preferred: bool = False
    """Whether it is the fix to choose without looking."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One proposal.

    `edit` replaces what is already typed; `kind` is `argument`, `dtype`, `size`, `keyword`.
    """

    label: str
    kind: str
    edit: Edit
    detail: str = ""
    documentation: str = ""

    def shifted(self, lines: int) -> Completion:
        """The same proposal `lines` lines further down."""
        return replace(self, edit=self.edit.shifted(lines))


@dataclass(frozen=True, slots=True)
class Linked:
    """Line `line` (from 0) of a shown text comes from equation `path`, written at `range` of the
    source.
    """

    line: int
    path: str
    range: Range | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A virtual document: its text, and the lines that lead back to the source.

    `equations` are those that a source was verified by.
    """

    title: str
    text: str
    links: tuple[Linked, ...] = ()
    stale: bool = False
    equations: int = 0
    companion: bytes = b""
    """The file of arrays that source reads from beside it."""
    caveats: tuple[Caveat, ...] = ()
    """What of the module it leaves out; not in `text`."""
    ran: tuple[str, ...] = ()
    """How source was run beside the original, with equal results."""
