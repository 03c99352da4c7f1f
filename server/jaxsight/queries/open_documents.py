"""The open documents of a session: their texts are read soon, in threads if they are large."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from jaxsight.examples.sets import OutsideSet
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.long_work import Aside, Turns
from jaxsight.settings.example_settings import ExampleSettings

Observed = Mapping[tuple[str, str], tuple[OutsideSet, ...]]
"""Observed calls by the path of a file and the qualified name of a function in it."""

_NONE: Observed = MappingProxyType({})
_READERS = 3
"""Large texts that are parsed at the same time, a choice: the parser holds the GIL."""


class OpenDocuments:
    """The open documents by path, and the functions in them that have example inputs."""

    def __init__(self, projects: Projects, turns: Turns) -> None:
        self.by_path: dict[str, Document] = {}
        self._projects = projects
        self._readers = Aside(_READERS)
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
