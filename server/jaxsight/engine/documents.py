"""An open file: its text as chunks, and the functions in it that have example inputs.

A document is changed in one place only (`Document.change`); everything that is computed hands on the immutable
`Module` that it began with, so an edit in the middle of a computation cannot mix two texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from jaxsight.engine import examples
from jaxsight.engine.cache import Recent
from jaxsight.engine.examples import Examples
from jaxsight.engine.functions import Function
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.outside import LIBRARIES, Outside
from jaxsight.engine.shift import TextShift
from jaxsight.engine.text import Position, Range

_EXAMPLES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Subject:
    """A function that can be asked about: where it stands now and what to trace it with."""

    chunk: ModuleChunk
    function: Function
    examples: Examples
    broken: bool = False
    """Its text does not parse just now: this is how it was when it last did, where it stands now."""

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


class Document:
    """The editor's text of one file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.module = Module.parse(text)
        self._examples: Recent[tuple[object, ...], Examples] = Recent(_EXAMPLES_KEPT)
        self._subjects: tuple[Module, Outside, tuple[Subject, ...]] | None = None
        self._whole: tuple[Module, tuple[Subject, ...]] | None = None

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
        if self.module.syntax_problem is not None:
            found += self._broken({function.qualname for _, function in self.module.functions})
        else:
            self._whole = (self.module, tuple(found))
        self._subjects = (self.module, outside, tuple(found))
        return self._subjects[2]

    def _broken(self, standing: set[str]) -> Iterator[Subject]:
        """The functions that stood, when the text last parsed, where it does not parse now."""
        if self._whole is None:
            return
        module, subjects = self._whole
        shift = TextShift(module.text, self.module.text)
        for subject in subjects:
            name = shift.range(subject.name_range)
            if name is None or subject.name in standing:
                continue
            chunk = self.module.chunk_at(name.start)
            if chunk is not None and chunk.broken is not None:
                first_line = name.start.line - subject.function.name_range.start.line
                then = replace(subject.chunk, first_line=first_line)
                yield replace(subject, chunk=then, broken=True)

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
    """The dotted name under which Python would import the file: as deep as there are `__init__.py` files above it.

    Of an installed library it is what stands below the folder of libraries: packages without `__init__.py` are among them.
    """
    file = Path(path)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    installed = not LIBRARIES.isdisjoint(folder.parts)
    while folder.parent != folder and folder.name not in LIBRARIES:
        if not installed and not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or file.stem
