"""An open file: its text as chunks, and its functions with example inputs.

A document is changed in one place only (`Document.change`). Every computation passes on the
immutable `Module` that it began with, so an edit in the middle of a computation cannot mix two
texts.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from jaxsight.examples import choice
from jaxsight.examples.sets import Examples, OutsideSet
from jaxsight.files import reading
from jaxsight.projects.project import Observed
from jaxsight.projects.projects import Projects
from jaxsight.queries.long_work import JobQueue, Turns
from jaxsight.settings.example_settings import LIBRARIES, ExampleSettings
from jaxsight.source.definitions import Function
from jaxsight.source.module import SHORT, Module, ModuleChunk, PlacedFunction
from jaxsight.source.run_marks import is_root
from jaxsight.source.text import Position, Range, normalized
from jaxsight.source.text_shift import TextShift
from jaxsight.wire.messages.inputs import PROGRAM

_Key = tuple[object, ...]
"""The data that a function's example inputs depend on."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A function that can be traced: its current place and its example inputs."""

    chunk: ModuleChunk
    function: Function
    examples: Examples
    id: str
    """Its name, or which definition of it this is (`Module.ids`)."""
    broken: bool = False
    """Whether its text currently does not parse.

    Then the function is the last version that parsed, at its current place.
    """

    @property
    def name(self) -> str:
        return self.function.qualname

    @property
    def is_proposed(self) -> bool:
        """Whether jaxsight proposed its example inputs: nobody wrote or passed them."""
        return self.examples.source == "proposed"

    @property
    def is_program(self) -> bool:
        """Whether it is no function but the file's own program, or one that XLA gets from it."""
        return not self.name or self.name.startswith(PROGRAM)

    @property
    def title(self) -> str:
        """Its name for people: `step`, or `jit(<lambda>)` of a program without a function."""
        return self.name.removeprefix(PROGRAM)

    @property
    def is_called(self) -> bool:
        """Whether its example inputs are those of calls that may change with another text."""
        return self.examples.source == "program"

    @property
    def is_root(self) -> bool:
        """Whether the author says that it is compiled, with a comment `# jaxsight: root`."""
        return is_root(self.chunk, self.function)

    @property
    def placed(self) -> PlacedFunction:
        """The function in its chunk."""
        return PlacedFunction(self.chunk, self.function)

    @property
    def name_range(self) -> Range:
        """The function's name, absolute."""
        return self.placed.name_range

    @property
    def range(self) -> Range:
        """The whole definition, absolute."""
        return self.placed.range

    @property
    def body(self) -> Range:
        """Its body, absolute."""
        return self.placed.body

    def place(self, range: Range) -> Range:
        """Return where a part of its example inputs is written, absolute.

        For those of the project's settings, this is the function's name.
        """
        if self.examples.source == "project":
            return self.name_range
        return self.placed.place(range)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The functions of a module that have example inputs.

    It also keeps the example inputs by the data that they depend on.
    """

    module: Module
    made_of: tuple[object, ...]
    """The objects that it follows from: while they are the same, it is current."""
    subjects: tuple[Subject, ...]
    examples: Mapping[_Key, Examples]
    whole: tuple[Module, tuple[Subject, ...]] | None
    """The module and its functions of the last text that parsed."""


class Document:
    """The editor's text of one file."""

    def __init__(self, path: str, module: Module | str) -> None:
        self.path = path
        self.module = Module.parse(module) if isinstance(module, str) else module
        self.looked_into = False
        """Whether other modules import names from this one while it runs.

        Then all of its statements that only bind names run.
        """
        self.proposed: Mapping[str, tuple[OutsideSet, ...]] = {}
        """Proposed example inputs that are shown, by the function's qualified name."""
        self.rejected: Mapping[str, tuple[str, frozenset[OutsideSet]]] = {}
        """Calls whose traces show nothing, by a function's id, with a digest of what it means."""
        self.suggested: dict[str, str] = {}
        """Inputs that the text does not prove, in words, by the function's qualified name."""
        self.hidden: set[str] = set()
        """Functions whose proposed example inputs the user does not want to see."""
        self._unread: str | None = None
        self._reading: asyncio.Task[None] | None = None
        self._read: _Reading | None = None

    def change(self, text: str) -> None:
        """Parse a text now."""
        self.module = self.module.edited(text)
        self._unread = None

    @property
    def is_read(self) -> bool:
        """Whether the module is that of the current text."""
        return self._unread is None

    @property
    def text(self) -> str:
        """The current text, parsed or not."""
        return self.module.text if self._unread is None else self._unread

    def line_of(self, chunk: str) -> int | None:
        """Return the line (from 1) at which a chunk now begins; `None` if it is gone."""
        return next((c.first_line + 1 for c in self.module.chunks if c.id == chunk), None)

    def read_now(self) -> None:
        """Parse the current text now if it is not parsed yet, however long that takes."""
        if self._unread is not None:
            self.change(self._unread)

    def put(self, text: str, outside: ExampleSettings, aside: JobQueue, turns: Turns) -> None:
        """Take a text.

        A small change is parsed at once, a short text soon, and any other in a thread. Until then
        `is_read` is false.
        """
        text = normalized(text)
        if self.is_read and self.module.text and self.module.quickly_edited(text):
            self.change(text)
            return
        self._unread = text
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(
                self._read_later(outside, aside, turns), name=f"read {self.path}"
            )

    async def read(self) -> None:
        """Wait until the current text is parsed; parse it now if it is short."""
        if self._unread is not None and len(self._unread) <= SHORT:
            self.read_now()
        while self._reading is not None and not self.is_read:
            await asyncio.wait([self._reading])

    def close(self) -> None:
        """Cancel parsing."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read_later(self, outside: ExampleSettings, aside: JobQueue, turns: Turns) -> None:
        try:
            while (text := self._unread) is not None:
                if len(text) <= SHORT:
                    await turns.breathe()
                    self.read_now()
                    return
                # The next text is parsed from this one, so no parse is wasted.
                read = await aside.run(lambda text=text: self._read_whole(text, outside))  # type: ignore[misc]
                if self._unread is None:
                    return  # `read_now` parsed it meanwhile
                self.module, self._read = read.module, read
                if self._unread is text:
                    self._unread = None
        finally:
            self._reading = None

    def _read_whole(self, text: str, outside: ExampleSettings) -> _Reading:
        module = self.module.edited(text)
        module.precompute()
        return self._subjects_of(module, outside)

    def subjects(self, outside: ExampleSettings) -> tuple[Subject, ...]:
        """Return the functions with example inputs, valid or not, in text order."""
        read, now = self._read, (self.module, outside, self.proposed, self.rejected)
        if read is None or not all(map(operator.is_, read.made_of, now)):
            read = self._read = self._subjects_of(self.module, outside)
        return read.subjects

    def _subjects_of(self, module: Module, outside: ExampleSettings) -> _Reading:
        """Find the functions of a module that have example inputs.

        The example inputs of unchanged functions are not read again.
        """
        # The loop may replace these while a thread is here.
        last, proposed, rejected = self._read, self.proposed, self.rejected
        subjects: list[Subject] = []
        name = module_name(self.path)
        previous = last.examples if last is not None else {}
        read: dict[_Key, Examples] = {}
        sizes = tuple(outside.sizes.items())
        for (chunk, function), id in zip(module.functions, module.ids, strict=True):
            project = outside.examples.get(f"{name}:{function.qualname}")
            calls = outside.observed.get((self.path, id), ())
            if module.defining[function.qualname] is chunk:
                calls += proposed.get(function.qualname, ())
            _, without = rejected.get(id, ("", frozenset()))
            calls = tuple(call for call in calls if call not in without)
            if outside.only_written:
                calls = ()
            key = (chunk.id, function.qualname, function.range, sizes, project, outside.mesh, calls)
            if (own := previous.get(key)) is None:
                own = choice.of(
                    function, sizes=outside.sizes, project=project, mesh=outside.mesh, outside=calls
                )
            read[key] = own
            if own.sets or own.problems:
                subjects.append(Subject(chunk, function, own, id))
        last_whole = last.whole if last is not None else None
        if module.syntax_problem is None:
            last_whole = (module, tuple(subjects))
        elif last_whole is not None:
            subjects += _broken(
                *last_whole, module, {function.qualname for _, function in module.functions}
            )
        made_of = (module, outside, proposed, rejected)
        return _Reading(module, made_of, tuple(subjects), read, last_whole)


def _broken(
    module: Module, subjects: Sequence[Subject], now: Module, standing: set[str]
) -> Iterator[Subject]:
    """Yield the functions of the last text that parsed, where the current text does not parse."""
    shift = TextShift(module.text, now.text)
    for subject in subjects:
        if (name := shift.range(subject.name_range)) is None or subject.name in standing:
            continue
        chunk = now.chunk_at(name.start)
        if chunk is not None and chunk.broken is not None:
            first_line = name.start.line - subject.function.name_range.start.line
            then = replace(subject.chunk, first_line=first_line)
            yield replace(subject, chunk=then, broken=True)


def subject_at(subjects: tuple[Subject, ...], position: Position) -> Subject | None:
    """Return the innermost function whose definition contains the position."""
    holding = [s for s in subjects if position in s.range]
    return min(holding, key=lambda s: s.range.end.line - s.range.start.line, default=None)


def module_name(path: str) -> str:
    """Return the dotted name under which Python would import the file.

    It includes all parent packages with `__init__.py`. For an installed library it is the path
    below `site-packages`, because some packages have no `__init__.py`.
    """
    file = Path(path)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    installed = not LIBRARIES.isdisjoint(folder.parts)
    while folder.parent != folder and folder.name not in LIBRARIES:
        if not installed and not reading.is_file(folder / "__init__.py"):
            break
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or file.stem


# The open documents of a session: their texts are read soon, in threads if they are large.

_NONE: Observed = MappingProxyType({})
_READERS = 3
"""Large texts that are parsed at the same time, a choice: the parser holds the GIL."""


class OpenDocuments:
    """The open documents by path, and the functions in them that have example inputs."""

    def __init__(self, projects: Projects, turns: Turns) -> None:
        self.by_path: dict[str, Document] = {}
        self._projects = projects
        self._readers = JobQueue(_READERS)
        self._turns = turns
        self._dry_calls: dict[str, Observed] = {}
        self._outside: dict[str, tuple[ExampleSettings, Observed, ExampleSettings]] = {}
        """By path: settings and observed calls, and both together."""
        projects.documents = self.by_path

    def open(self, path: str, text: str) -> None:
        """Add a document."""
        self.by_path[path] = Document(path, "")
        self.put(path, text)

    def put(self, path: str, text: str) -> None:
        """Replace the whole text of a document; without an event loop, it is parsed at once."""
        document = self.by_path[path]
        if loop_runs():
            document.put(text, self.outside(path), self._readers, self._turns)
        else:
            document.change(text)
        self._projects.texts.put(path, document.text)

    def close(self, path: str) -> None:
        """Remove a document, if it is open."""
        self._dry_calls.pop(path, None)
        self._outside.pop(path, None)
        if (document := self.by_path.pop(path, None)) is not None:
            document.close()
            self._projects.texts.put(path, None)

    def get(self, path: str) -> Document | None:
        """Return an open document, whose text may not be parsed yet."""
        return self.by_path.get(path)

    async def read(self, path: str) -> Document | None:
        """Return an open document after its text was parsed."""
        document = self.by_path.get(path)
        if document is not None and not document.is_read:
            await document.read()
        return self.by_path.get(path)

    def now(self, path: str) -> Document | None:
        """Return an open document; its text is parsed at once."""
        if (document := self.by_path.get(path)) is not None:
            document.read_now()
        return document

    def subjects(self, document: Document) -> tuple[Subject, ...]:
        """Return the functions of a document that have example inputs."""
        return document.subjects(self.outside(document.path))

    def functions(self, path: str) -> list[str]:
        """Return the ids of a file's functions that have example inputs (`Module.ids`)."""
        document = self.now(path)
        return [] if document is None else [each.id for each in self.subjects(document)]

    def dry_calls(self, path: str) -> Observed:
        """Return the calls of a document's functions in dry runs."""
        return self._dry_calls.get(path, _NONE)

    def put_dry_calls(self, path: str, calls: Observed) -> bool:
        """Replace a document's calls in dry runs; return whether they are others."""
        if path not in self.by_path or self.dry_calls(path) == calls:
            return False
        self._dry_calls[path] = calls
        return True

    def outside(self, path: str) -> ExampleSettings:
        """Return what a document's example inputs depend on besides its text.

        It is the same object until that changes.
        """
        settings, dry_calls = self._projects.of(path).outside, self.dry_calls(path)
        if not dry_calls:
            return settings
        cached = self._outside.get(path)
        if cached is None or cached[0] is not settings or cached[1] is not dry_calls:
            every = dict(settings.observed)
            for function, sets in dry_calls.items():
                every[function] = (*every.get(function, ()), *sets)
            cached = settings, dry_calls, replace(settings, observed=every)
            self._outside[path] = cached
        return cached[2]

    def find(self, path: str, function: str) -> tuple[Document, Subject]:
        """Return a function by its qualified name.

        Raises:
            LookupError: no such function, or no example inputs; the message says which.
        """
        if (document := self.now(path)) is None:
            raise LookupError(f"{path} is not open")
        for subject in self.subjects(document):
            if subject.id == function:
                if subject.examples.sets:
                    return document, subject
                raise LookupError(f"the example inputs of {function} have errors")
        if function in {definition.qualname for _, definition in document.module.functions}:
            raise LookupError(
                f"{function} has no example inputs: add a section `Example inputs:` to its "
                "docstring"
            )
        raise LookupError(f"there is no function {function} in {path}")

    def stop(self) -> None:
        """Parse no further text in threads."""
        self._readers.close()


def loop_runs() -> bool:
    """Return whether this is called within an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
