"""An explanation: tables of the conditions under which a failure occurs, as data, text and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from jaxsight.repro.failures import RunFailure


class Verdict(StrEnum):
    """What a trial, or a comparison of values, came to."""

    FAILS = "fails"
    PASSES = "passes"
    OTHER = "other failure"
    """It fails in another way than the failure that is explained."""
    UNTRIED = "not tried"

    DIVERGES = "diverges"
    AGREES = "agrees"


JIT = "jit"
FLAGS = "flags"
HLO_PASSES = "passes"
INTERPRETERS = "interpreters"
VERSIONS = "versions"
TARGETS = "targets"
INTERMEDIATES = "intermediates"

TITLES = {
    JIT: "jit and eager",
    FLAGS: "XLA flags",
    HLO_PASSES: "HLO passes",
    INTERPRETERS: "Python environments",
    VERSIONS: "JAX versions",
    TARGETS: "Targets",
    INTERMEDIATES: "Intermediate values",
}
"""The tables by name, in the order in which they are made and shown."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One condition that was tried.

    Attributes:
        subject: the condition, such as a flag, a version or an equation.
        detail: the other failure, why it was not tried, or the values that differ.
        command: the command that repeats the trial, for a shell; empty if nothing was run.
        seconds: how long the trial took.
    """

    subject: str
    verdict: Verdict
    detail: str = ""
    command: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """The trials of one kind.

    Attributes:
        name: a key of `TITLES`.
        conclusion: what the rows show, in one clause; empty if they show nothing.
        notes: what limits the conclusion.
    """

    name: str
    rows: tuple[TrialRow, ...] = ()
    conclusion: str = ""
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The table's heading."""
        return TITLES.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Under which conditions a repro fails.

    Attributes:
        failure: the failure that is explained: what the file does by itself.
        notes: what limits all tables, such as a failure that does not always occur.
    """

    failure: RunFailure
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()

    def table(self, name: str) -> Table | None:
        """Return the table of a name, if there is one."""
        return next((table for table in self.tables if table.name == name), None)

    def record(self) -> dict[str, object]:
        """Return the explanation as JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the tables as text for a terminal, with the commands that do not just fail."""
        blocks = [f"failure: {self.failure.headline}"]
        blocks += [f"note: {note}" for note in self.notes]
        return "\n".join(blocks) + "\n" + "".join(f"\n{_text(table)}" for table in self.tables)


def _text(table: Table) -> str:
    head = f"{table.title}: {table.conclusion}" if table.conclusion else table.title
    widths = [
        max((len(getattr(row, field)) for row in table.rows), default=0)
        for field in ("verdict", "subject")
    ]
    lines = [head]
    for row in table.rows:
        line = f"  {row.verdict:{widths[0]}}  {row.subject:{widths[1]}}"
        lines.append(f"{line}  {row.detail}".rstrip())
        if row.command and row.verdict in (Verdict.PASSES, Verdict.OTHER):
            lines.append(f"  {'':{widths[0]}}  $ {row.command}")
    lines += [f"  note: {note}" for note in table.notes]
    return "\n".join(lines) + "\n"
