"""A caveat: a statement that an answer skipped."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.source.module import ModuleChunk
from jaxsight.source.slicing.chunk_roles import ChunkRole
from jaxsight.source.statements import first_line
from jaxsight.source.text import Range

_NAMES_SHOWN = 3
"""Names that a caveat lists, a choice: it is one line; others are counted."""
_STATEMENT_SHOWN = 48
"""Characters of a statement that a caveat quotes, a choice: its name and its first arguments."""


@dataclass(frozen=True, slots=True)
class SliceCaveat:
    """Why an answer may differ from that of the imported module.

    It names the statement at `range` and gives the reason in one clause.
    """

    range: Range
    reason: str


def skipped(chunk: ModuleChunk, role: ChunkRole) -> SliceCaveat:
    """Return the caveat of a chunk that is left out."""
    names = sorted(role.changes) if role.changes is not None else []
    if role.changes is None:
        consequence = "may change anything"
    elif len(names) > _NAMES_SHOWN:
        consequence = f"may change `{names[0]}` and {len(names) - 1} other names"
    else:
        consequence = "may change " + " and ".join(f"`{name}`" for name in names)
    reason = f"{quoted(chunk)} was not run ({role.reason}) and {consequence}"
    return SliceCaveat(first_line(chunk.text).shifted(chunk.first_line), reason)


def redefined(chunk: ModuleChunk) -> SliceCaveat:
    """Return the caveat of the chunk before which a slice ends."""
    reason = f"{quoted(chunk)} was not run: it redefines the name"
    return SliceCaveat(first_line(chunk.text).shifted(chunk.first_line), reason)


def quoted(chunk: ModuleChunk) -> str:
    """Return a statement's first line, after its decorators, shortened and in backticks."""
    lines = chunk.text.split("\n")
    return quoted_line(next((line for line in lines if not line.startswith("@")), lines[0]))


def quoted_line(line: str) -> str:
    """Return a line without its comment, shortened and in backticks."""
    line = " ".join(line.partition("#")[0].replace("`", "'").split())
    short = line if len(line) <= _STATEMENT_SHOWN else f"{line[: _STATEMENT_SHOWN - 1].rstrip()}…"
    return f"`{short}`"
