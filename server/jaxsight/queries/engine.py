"""The engine: what features ask, in one piece. All state of a session is below it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TypeVar

from jaxsight import rules
from jaxsight.events import Event
from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import Attention, UserChoices
from jaxsight.queries.documents import OpenDocuments
from jaxsight.queries.dry_runs.dry_runs import ProgramCalls
from jaxsight.queries.long_work import JobQueue, Turns, end
from jaxsight.queries.measurements import Measurements
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.processes import ProcessExplorer
from jaxsight.queries.profiles import OpenProfiles
from jaxsight.queries.programs.programs import Programs
from jaxsight.queries.proposals.proposals import Proposals
from jaxsight.queries.sizes.explorer import SizeExplorer
from jaxsight.queries.sizes.naming import SizeNames
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.queries.traces.trace_cache import TraceCache
from jaxsight.queries.traces.traces import DocumentTraces
from jaxsight.queries.waiting import Waiting

# Import the rules without blocking the event loop.

_TURNS = 20
"""Turns of the loop before importing begins, a choice: answers that waited for traces go first."""


class RuleLoader:
    """Imports rules when findings are asked for first: it takes longer than a hover."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._importing: asyncio.Task[None] | None = None
        self._imported = asyncio.Event()

    @property
    def are_ready(self) -> bool:
        """Whether all rules are imported."""
        return self._imported.is_set()

    def start(self) -> None:
        """Begin to import the rules, if that has not been done."""
        if self._importing is None:
            self._importing = asyncio.create_task(self._import(), name="import rules")

    async def ready(self) -> None:
        """Return when all rules are imported."""
        self.start()
        await self._imported.wait()

    async def aclose(self) -> None:
        """Stop importing."""
        if self._importing is not None:
            await end([self._importing])

    async def _import(self) -> None:
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            with cached_bytecode(file_for("rules"), dataclasses):
                for _ in rules.preload():
                    await self._turns.breathe()
        finally:
            self._imported.set()  # what is missing is imported where it is used


T = TypeVar("T")


class Engine:
    """The documents of a session, their traces, and their programs."""

    def __init__(self, projects: Projects) -> None:
        """Begin without documents."""
        self.projects = projects
        self.memory = memory = SessionMemory()
        self.aside = aside = JobQueue()
        """The thread for analysing large modules and traces."""
        self.turns = turns = Turns()
        """Turns of the event loop, which long work shares."""
        self.documents = documents = OpenDocuments(projects, turns)
        self.choices = choices = UserChoices(projects)
        self.dry_runs = ProgramCalls(documents, projects, choices, memory, aside)
        cache = TraceCache(projects.texts, memory)
        self.traces = DocumentTraces(
            documents, projects, choices, self.dry_runs, memory, aside, turns, cache
        )
        self.attention = Attention()
        self.programs = Programs(projects, self.traces, choices, memory, self.attention)
        self.sizes = SizeExplorer(projects, memory)
        self.processes = ProcessExplorer(projects, memory)
        self.proposals = Proposals(projects, documents, choices, memory, aside)
        self.waiting = Waiting(projects.events)
        self.rules = RuleLoader(turns)
        self.measurements = Measurements(projects, choices, memory, self.programs)
        self.profiles = OpenProfiles()

    @property
    def events(self) -> asyncio.Queue[Event]:
        """The events for the session's owner."""
        return self.projects.events

    def size_names(self, question: Question) -> SizeNames | None:
        """Return the names of the sizes in the answer to a question, if they are known."""
        answer = self.traces.cache.cached(question)
        explored = self.sizes.cached(answer) if answer is not None else None
        return explored.names if explored is not None else None

    async def look(self, view: View, look: Callable[[], T]) -> T:
        """Return the result of `look`, which runs in a thread for a large program."""
        return await self.aside.run(look) if view.is_large else look()

    def close(self, path: str) -> None:
        """Drop what is known of a document, and stop what is being asked about it."""
        self.documents.close(path)
        self.traces.cache.cancel(path)
        self.sizes.running.cancel(path)
        self.processes.running.cancel(path)
        self.waiting.close(path)
        self.programs.close(path)
        self.attention.close(path)
        self.dry_runs.close(path)
        self.proposals.close(path)
        self.measurements.cancel(path)
        self.memory.close(path)
        self.projects.closed(path)

    def retry(self, *, data: bool = True) -> None:
        """Drop failures whose cause may be gone: files on disk or the target changed.

        Args:
            data: whether it was more than the texts of modules, whose versions are known.
        """
        self.memory.retry()
        for document in self.documents.by_path.values():
            document.rejected = {}
        self.traces.cache.retry()
        self.dry_runs.retry()
        if data:
            self.projects.retry()

    def outdate(self) -> None:
        """Drop all answers: settings, interpreters or decisions changed, or the user restarts."""
        self.memory.outdate()
        for document in self.documents.by_path.values():
            document.rejected = {}
        self.dry_runs.outdate()
        self.traces.cache.cancel()
        self.sizes.running.cancel()
        self.processes.running.cancel()

    async def aclose(self) -> None:
        """End all processes and threads."""
        self.waiting.cancel()
        self.traces.cache.cancel()
        self.sizes.running.cancel()
        await self.measurements.aclose()
        await self.processes.aclose()
        await self.rules.aclose()
        await self.programs.aclose()
        await self.proposals.aclose()
        await self.projects.aclose()
        self.aside.close()
        self.dry_runs.stop()
        self.documents.stop()
