"""The open documents of a session: their texts are read soon, in threads if they are large."""

from __future__ import annotations

import asyncio

from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.long_work import Aside, Turns

_READERS = 3
"""Number of large texts that are parsed at the same time."""


class OpenDocuments:
    """The open documents by path, and the functions in them that have example inputs."""

    def __init__(self, projects: Projects, turns: Turns) -> None:
        self.by_path: dict[str, Document] = {}
        self._projects = projects
        self._readers = Aside(_READERS)
        self._turns = turns
        projects.documents = self.by_path

    def open(self, path: str, text: str) -> None:
        """Add a document."""
        self.by_path[path] = Document(path, "")
        self.put(path, text)

    def put(self, path: str, text: str) -> None:
        """Replace the whole text of a document; without an event loop, it is parsed at once."""
        document = self.by_path[path]
        if loop_runs():
            document.put(text, self._projects.of(path).outside, self._readers, self._turns)
        else:
            document.change(text)

    def close(self, path: str) -> None:
        """Remove a document, if it is open."""
        if (document := self.by_path.pop(path, None)) is not None:
            document.close()

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
        document = self.by_path.get(path)
        if document is not None:
            document.read_now()
        return document

    def subjects(self, document: Document) -> tuple[Subject, ...]:
        """Return the functions of a document that have example inputs."""
        return document.subjects(self._projects.of(document.path).outside)

    def find(self, path: str, function: str) -> tuple[Document, Subject]:
        """Return a function by its qualified name.

        Raises:
            LookupError: no such function, or no example inputs; the message says which.
        """
        document = self.now(path)
        if document is None:
            raise LookupError(f"{path} is not open")
        for subject in self.subjects(document):
            if subject.name == function:
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
