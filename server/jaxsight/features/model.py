"""The engine's answers in editor terms, without LSP.

They are plain data that `lsp/` and `cli/` convert.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from jaxsight.figures.panel import PanelTimes
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.rules.finding import Finding
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Edit, Range
from jaxsight.wire.messages.compiling import Compiled

ActionKind: TypeAlias = str
"""A kind of code actions as LSP has it, such as `refactor.rewrite.jaxsight.view`."""

DocumentKind: TypeAlias = str
"""A kind of virtual documents, such as `jaxpr`."""

CompiledKind = Literal["hlo", "hlo-metadata", "kernels"]
"""Texts of a compiled function that are shown as documents; the second one has metadata."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about a range.

    `stale` says that it describes the text before the last edits.
    """

    range: Range
    markdown: str
    stale: bool = False
    function: str = ""
    """The traced function that it describes, whose documents can be opened; empty if none."""


@dataclass(frozen=True, slots=True)
class Hint:
    """An inlay hint after the range's end.

    `stale` says that it describes the text before the last edits; its label then carries a mark.
    """

    range: Range
    label: str
    tooltip: str = ""
    stale: bool = False
    attached: bool = False
    """Whether it follows the text without a space."""
    command: str = ""
    """A command that a click on the hint runs with `arguments`, where the client has clicks."""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lens:
    """A code lens above a function: a click on `title` runs `command` with `arguments`."""

    range: Range
    title: str
    command: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """A code action with its title and its LSP-style kind.

    It edits this document or runs `command` with `arguments`. Edits that take long to compute are
    absent at first: `Session.resolve` computes them from `pending`.
    """

    title: str
    kind: ActionKind
    edits: tuple[Edit, ...] = ()
    command: str = ""
    arguments: tuple[str, ...] = ()
    pending: str = ""
    finding: Finding | None = None
    """The finding that a quick fix fixes."""
    preferred: bool = False
    """Whether an editor may apply it without a choice."""
    file: str = ""
    """The file that `edits` are for, if it is another one than that of the request."""


CompletionKind = Literal["argument", "dtype", "size", "keyword"]


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion item; `edit` replaces the text typed so far."""

    label: str
    kind: CompletionKind
    edit: Edit
    detail: str = ""

    def shifted(self, lines: int) -> Completion:
        """Return the same item `lines` lines further down."""
        return replace(self, edit=self.edit.shifted(lines))


@dataclass(frozen=True, slots=True)
class Linked:
    """A link from line `line` (from 0) of a shown text to equation `path`.

    The equation was written at `range` of the source.
    """

    line: int
    path: str
    range: Range | None


@dataclass(frozen=True, slots=True)
class VirtualText:
    """A virtual document: its text, and links from its lines to the source.

    `equations` is the number of equations that sourcerized code was compared with.
    """

    title: str
    text: str
    links: tuple[Linked, ...] = ()
    stale: bool = False
    equations: int = 0
    companion: bytes = b""
    """The file of arrays that sourcerized code loads from the same folder."""
    caveats: tuple[SliceCaveat, ...] = ()
    """Statements of the module that were skipped; not in `text`."""
    ran: tuple[str, ...] = ()
    """Runs of sourcerized code next to the original, with equal results."""

    def below(self, lines: Sequence[str]) -> VirtualText:
        """Return the document below some lines, with its links moved down."""
        if not lines:
            return self
        links = tuple(replace(link, line=link.line + len(lines)) for link in self.links)
        return replace(self, text="\n".join([*lines, self.text]), links=links)


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel about a function. Either `figures` is set, or `trouble` says why it is not."""

    path: str
    function: str
    range: Range
    """The whole definition."""
    chosen: str
    """The active example set; the unnamed first one is the empty string."""
    sets: tuple[str, ...]
    target: str
    stale: bool = False
    figures: LocatedFigures | None = None
    before: Compiled | None = None
    """The program that it is compared with: that of the saved file."""
    measured: PanelTimes | None = None
    """The last measurement, if the user had one made."""
    trouble: str = ""
    caveats: tuple[SliceCaveat, ...] = ()
    """How the answer may differ from that of the imported module."""
    assumed: str = ""
    """The assumed inputs in words, with their sizes; empty if there are none."""
    measurable: bool = False
    """Whether the target is a device that is there, not a chip that is compiled for."""
