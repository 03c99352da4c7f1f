"""An open file: its text as chunks, and the functions in it that have example inputs.

A document is changed in one place only (`Document.change`); everything that is computed hands on the immutable
`Module` that it began with, so an edit in the middle of a computation cannot mix two texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxsight.engine import examples
from jaxsight.engine.cache import Recent
from jaxsight.engine.examples import Examples
from jaxsight.engine.functions import Function
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.text import Position, Range

_EXAMPLES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Subject:
    """A function that can be asked about: where it stands now and what to trace it with."""

    chunk: ModuleChunk
    function: Function
    examples: Examples

    @property
    def name(self) -> str:
        return self.function.qualname

    @property
    def name_range(self) -> Range:
        """The function's name, absolute."""
        return self.function.name_range.shifted(self.chunk.first_line)

    @property
    def range(self) -> Range:
        """The whole definition, absolute."""
        return self.function.range.shifted(self.chunk.first_line)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a document's examples depend on besides its text: sizes of the settings, examples of the project."""

    sizes: Mapping[str, int]
    examples: Mapping[str, str]


class Document:
    """The editor's text of one file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.module = Module.parse(text)
        self._examples: Recent[tuple[object, ...], Examples] = Recent(_EXAMPLES_KEPT)
        self._subjects: tuple[Module, Outside, tuple[Subject, ...]] | None = None

    def change(self, text: str) -> None:
        self.module = self.module.edited(text)

    def subjects(self, outside: Outside) -> tuple[Subject, ...]:
        """The functions of the text as it stands that have example inputs, well-formed or not, in order."""
        if self._subjects is not None:
            module, known, subjects = self._subjects
            if module is self.module and known is outside:
                return subjects
        found: list[Subject] = []
        name = module_name(self.path)
        for chunk, function in self.module.functions:
            read = self._read(
                chunk, function, outside, outside.examples.get(f"{name}:{function.qualname}")
            )
            if read.sets or read.problems:
                found.append(Subject(chunk, function, read))
        self._subjects = (self.module, outside, tuple(found))
        return self._subjects[2]

    def _read(
        self, chunk: ModuleChunk, function: Function, outside: Outside, project: str | None
    ) -> Examples:
        key = (chunk.id, function.qualname, function.range, tuple(outside.sizes.items()), project)
        read = self._examples.get(key)
        if read is None:
            read = examples.of(function, sizes=outside.sizes, project=project)
            self._examples.put(key, read)
        return read


def subject_at(subjects: tuple[Subject, ...], position: Position) -> Subject | None:
    """The innermost of the subjects whose definition holds the position."""
    holding = [s for s in subjects if position in s.range]
    return min(holding, key=lambda s: s.range.end.line - s.range.start.line, default=None)


def module_name(path: str) -> str:
    """The dotted name under which Python would import the file: as deep as there are `__init__.py` files above it."""
    file = Path(path)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or file.stem
