"""The proposed example inputs of a session: each function is tried once for each of its meanings.

What infers and tries them is imported with the first one: the first shapes do not wait for it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import UserChoices
from jaxsight.queries.documents import Document, OpenDocuments
from jaxsight.queries.dry_runs.call_facts import PartialCall
from jaxsight.queries.long_work import JobQueue, SharedWork
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.sandbox import ProjectBench, Sandboxes
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.source.slicing.slices import slice_for

if TYPE_CHECKING:
    from jaxsight.queries.proposals.trying import Tried

_TRYING = "jaxsight.queries.proposals.trying"
_Key = tuple[str, str, str]
"""A file, a function, and a digest of what they mean."""


@dataclass(eq=False, slots=True)
class Proposals:
    """Tries proposals in a sandbox of each project, and keeps the outcomes."""

    _projects: Projects
    _documents: OpenDocuments
    _choices: UserChoices
    _memory: SessionMemory
    _aside: JobQueue
    _sandboxes: Sandboxes = field(default_factory=Sandboxes)
    _benches: dict[str, ProjectBench] = field(default_factory=dict)
    _running: SharedWork[_Key, Tried | None] = field(default_factory=SharedWork)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _watched: set[str] = field(default_factory=set)

    def watch(self, path: str) -> bool:
        """Note that an editor shows lenses of a file; return whether that is new."""
        is_new = path not in self._watched and path in self._documents.by_path
        if is_new:
            self._watched.add(path)
        return is_new

    def is_watched(self, path: str) -> bool:
        """Return whether proposals of a file are shown to anybody."""
        return path in self._watched

    def close(self, path: str) -> None:
        """Drop what is known of a document."""
        self._watched.discard(path)

    async def cached(
        self, document: Document, chunk: ModuleChunk, function: Function
    ) -> Tried | None:
        """Return the outcome for a function that was tried, as it and what it uses are now."""
        return self._memory.proposals.get(await self._key(document, chunk, function))

    async def meaning(self, document: Document, chunk: ModuleChunk, function: Function) -> str:
        """Return a digest of a function and of all that it uses in its file, with docstrings."""
        module = document.module
        name = function.qualname.partition(".")[0]
        slicing = functools.partial(slice_for, module, [name], chunk, keep_all=document.looked_into)
        needed = await self._aside.judge(module, slicing)
        return _digest(needed.key, function.docstring, function.class_docstring)

    async def _key(
        self,
        document: Document,
        chunk: ModuleChunk,
        function: Function,
        partial: PartialCall | None = None,
    ) -> _Key:
        meaning = await self.meaning(document, chunk, function)
        return document.path, function.qualname, _digest(meaning, partial)

    async def outcome(
        self,
        document: Document,
        chunk: ModuleChunk,
        function: Function,
        partial: PartialCall | None = None,
    ) -> Tried | None:
        """Return the outcome for a function; it is tried if it was not yet.

        With a call of the function, the arguments that it lacks are proposed.
        Returns `None` if the function's text cannot be read, or if its code may not run.
        """
        key = await self._key(document, chunk, function, partial)
        if (known := self._memory.proposals.get(key)) is not None:
            return known
        path = document.path
        if self._projects.of(path).held_back:
            return None

        async def attempt() -> Tried | None:
            async with self._turn:
                trying = await asyncio.to_thread(import_module, _TRYING)
                project, target = self._projects.of(path), self._choices.target(path)
                bench = self._bench(project)
                attempted = functools.partial(
                    trying.outcome_of, document, chunk, function, device=target.device
                )
                # Where somebody wrote inputs of a function, they wait for its shapes.
                sets = (each.examples for each in self._documents.subjects(document))
                is_written = any(each.sets and each.are_written for each in sets)
                if partial is None and (bench.has_died or is_written):
                    sandbox = self._sandboxes.of(project)
                    try:
                        outcome: Tried | None = await attempted(sandbox)
                    finally:
                        sandbox.rest()
                else:
                    outcome = await attempted(bench, partial=partial)
            if outcome is not None and path in self._documents.by_path:
                self._memory.proposals.put(key, outcome)
            return outcome

        return await self._running.get(key, attempt)

    async def preload(self) -> None:
        """Import what infers and tries proposals."""
        await asyncio.to_thread(import_module, _TRYING)

    async def aclose(self) -> None:
        """End all trying, and the processes."""
        await self._running.aclose()
        await self._sandboxes.aclose()

    def traced(self, project: Project, question: Question) -> Answer | None:
        """Return the project's trace that answers a question, if a proposal was tried with it."""
        return self._bench(project).traced.get(question.key_on_device)

    def _bench(self, project: Project) -> ProjectBench:
        bench = self._benches.get(project.root)
        if bench is None or bench.project is not project:
            bench = self._benches[project.root] = ProjectBench(project)
        return bench


def _digest(*parts: object) -> str:
    text = repr(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def show(document: Document, function: str, outcome: Tried | None) -> None:
    """Trace a function with a proposal that can be traced from now on; `None` ends that."""
    proposed = {name: sets for name, sets in document.proposed.items() if name != function}
    if outcome is not None and outcome.is_traced:
        proposed[function] = (outcome.outside_set,)
    if proposed != document.proposed:
        document.proposed = MappingProxyType(proposed)
