"""The proposed example inputs of a session: each function is tried once, one after another.

What infers and tries them is imported with the first one: the first shapes do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from jaxsight.examples import OutsideSet
from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document
from jaxsight.queries.memory import Memory
from jaxsight.queries.sandbox import Sandbox
from jaxsight.source.functions import Function
from jaxsight.source.module import ModuleChunk

if TYPE_CHECKING:
    from jaxsight.queries.proposals.trying import Outcome

_TRYING = "jaxsight.queries.proposals.trying"
LABEL = "proposed inputs"
"""The name of a proposed example set, for people."""


class Proposals:
    """Tries proposals in a sandbox of each project, and keeps the outcomes."""

    def __init__(
        self, projects: Projects, documents: Mapping[str, Document], memory: Memory
    ) -> None:
        self._projects = projects
        self._documents = documents
        self._memory = memory
        self._sandboxes: dict[str, Sandbox] = {}
        self._running: dict[tuple[str, str, str], asyncio.Task[Outcome | None]] = {}
        self._turn = asyncio.Lock()
        self._watched: set[str] = set()

    def watch(self, path: str) -> bool:
        """Note that an editor shows lenses of a file; return whether that is new."""
        is_new = path not in self._watched and path in self._documents
        if is_new:
            self._watched.add(path)
        return is_new

    def is_watched(self, path: str) -> bool:
        """Return whether proposals of a file are shown to anybody."""
        return path in self._watched

    def close(self, path: str) -> None:
        """Drop what is known of a document."""
        self._watched.discard(path)

    def known(self, document: Document, chunk: ModuleChunk, function: Function) -> Outcome | None:
        """Return the outcome for a function that was tried."""
        return self._memory.proposals.get((document.path, function.qualname, chunk.id))

    async def outcome(
        self, document: Document, chunk: ModuleChunk, function: Function
    ) -> Outcome | None:
        """Return the outcome for a function; it is tried if it was not yet.

        Returns `None` if the function's text cannot be read, or if its code may not run.
        """
        if (known := self.known(document, chunk, function)) is not None:
            return known
        if self._projects.of(document.path).held_back:
            return None
        key = document.path, function.qualname, chunk.id
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._try(document, chunk, function))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)

    async def import_ahead(self) -> None:
        """Import what infers and tries proposals."""
        await asyncio.to_thread(import_module, _TRYING)

    async def aclose(self) -> None:
        """End all trying, and the processes."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(sandbox.aclose() for sandbox in self._sandboxes.values()))
        self._sandboxes.clear()

    async def _try(
        self, document: Document, chunk: ModuleChunk, function: Function
    ) -> Outcome | None:
        async with self._turn:
            trying = await asyncio.to_thread(import_module, _TRYING)
            sandbox = await self._sandbox(self._projects.of(document.path))
            try:
                outcome: Outcome | None = await trying.outcome_of(
                    document, chunk, function, sandbox
                )
            finally:
                sandbox.rest()
        if outcome is not None and document.path in self._documents:
            key = document.path, function.qualname, chunk.id
            self._memory.proposals.put(key, outcome)
        return outcome

    async def _sandbox(self, project: Project) -> Sandbox:
        sandbox = self._sandboxes.get(project.root)
        if sandbox is None or sandbox.project is not project:
            if sandbox is not None:
                await sandbox.aclose()
            sandbox = self._sandboxes[project.root] = Sandbox(project)
        return sandbox


def show(document: Document, function: str, text: str) -> None:
    """Trace a function with proposed example inputs from now on; empty text ends that."""
    proposed = {name: shown for name, shown in document.proposed.items() if name != function}
    if text:
        proposed[function] = OutsideSet("proposed", LABEL, text, may_fail=True)
    document.proposed = MappingProxyType(proposed)
