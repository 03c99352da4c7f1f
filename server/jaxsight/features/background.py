"""Trace and compile the functions of open documents in the background, after a pause in typing."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable

from jaxsight.features.inlay_hints.hints import compiled_parts, needs_kernels
from jaxsight.features.proposals.assumed import (
    BUDGET,
    assume,
    is_worth_proposing,
    prefer_traced,
    reconsider,
)
from jaxsight.features.setup.unshown import FileStatuses
from jaxsight.queries.documents import Document, loop_runs
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.programs import LONG_COMPILE
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.queries.traces.traces import named
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.supervisor import Priority

log = logging.getLogger(__name__)

_PAUSES = 0.05, 0.5
"""The shortest and the longest pause after an edit in seconds; between them it is half of the last
trace's time. clangd has the same and the whole time (`DebouncePolicy` in `TUScheduler.h`): shorter
ones would trace texts that nobody looks at, longer ones would be felt."""
_FIRST = 4.0
"""Seconds to propose inputs right after a file was opened, a choice: dry runs wait meanwhile."""
_TYPING = 1.0
"""Seconds without an edit after which programs are run and inputs are proposed, a choice: less is
amid a word, and the next answer would wait for that."""

_SHOWN_AFTER = LONG_COMPILE + 0.1
"""Seconds after which a hint says that a function is being compiled: past `LONG_COMPILE`."""


class Background:
    """One task for each document, which an edit replaces."""

    def __init__(self, engine: Engine, before: Callable[[], None]) -> None:
        """Create it without tasks; `before` is called before a document is traced."""
        self._engine = engine
        self._statuses = FileStatuses(engine)
        self._before = before
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rejecting: set[str] = set()
        """Documents of which example sets were rejected since the last look at all functions."""
        self._seen: set[str] = set()
        """Documents whose functions were traced since they were opened."""

    def schedule(self, path: str) -> None:
        """Trace a document after a pause, in place of what is scheduled for it."""
        self.stop(path)
        if loop_runs():
            self._tasks[path] = asyncio.create_task(self._trace(path), name=f"trace {path}")

    def schedule_all(self) -> None:
        """Trace all documents again."""
        for path in self._engine.documents.by_path:
            self.schedule(path)

    def schedule_importers(self, path: str) -> None:
        """Trace the documents again whose answers were made of a file whose text has changed."""
        engine = self._engine
        for importer in {*engine.traces.cache.importers(path), *engine.dry_runs.readers(path)}:
            if self._engine.documents.get(importer) is not None:
                self.schedule(importer)

    def stop(self, path: str) -> None:
        """Cancel what is scheduled for a document."""
        if (task := self._tasks.pop(path, None)) is not None:
            task.cancel()
        self._engine.sizes.running.cancel(path)
        self._engine.processes.running.cancel(path)

    def close(self, path: str) -> None:
        """Stop, and forget a document."""
        self.stop(path)
        self._seen.discard(path)
        self._rejecting.discard(path)
        self._statuses.forget(path)

    def stop_all(self) -> None:
        """Cancel everything."""
        for path in list(self._tasks):
            self.stop(path)

    async def _trace(self, path: str) -> None:
        """Trace the functions without an answer, send refreshes, and compile."""
        engine = self._engine
        shortest, longest = _PAUSES
        await asyncio.sleep(min(max(shortest, engine.traces.cache.seconds(path) / 2), longest))
        await engine.turns.breathe()
        if (document := await engine.documents.read(path)) is None:
            return
        self._before()
        await self._statuses.update(document, is_settled=False)
        if not await self._trace_all(document, in_programs=False):
            return
        if not (was_seen := path in self._seen):
            self._seen.add(path)
            await self._propose(path, _FIRST)  # before programs run, which takes longer
        programs = self._run_dry(document, _TYPING if was_seen else 0.0)
        await asyncio.gather(self._name_sizes(path), self._compile(path), programs)
        await self._propose(path, BUDGET, 0.0 if was_seen else _TYPING)
        if (document := engine.documents.get(path)) is not None:
            await self._statuses.update(document, is_settled=True)

    async def _trace_all(self, document: Document, *, in_programs: bool = True) -> bool:
        """Trace all functions of a document without an answer; return whether all were asked.

        Args:
            document: the document.
            in_programs: whether also those for which a program has to run.
        """
        engine, path = self._engine, document.path
        await reconsider(engine, document)
        if not await self._trace_functions(document, in_programs=in_programs):
            return False
        if path in self._rejecting:  # functions have other sets now, of a weaker origin
            self._rejecting.discard(path)
            return await self._trace_all(document, in_programs=in_programs)
        engine.waiting.refresh(path)
        return True

    async def _settle(self, document: Document) -> bool:
        """Run programs until functions can be traced; return whether they have other inputs.

        Calls with which a function cannot be traced are replaced by others.
        """
        dry_runs, changed = self._engine.dry_runs, False
        try:
            changed = goes_on = await dry_runs.update(document)
            while goes_on and await self._trace_all(document):
                goes_on = dry_runs.prefer_traced(document) | await dry_runs.update(document)
                changed |= goes_on
        except Exception:
            log.exception("running programs that reach %s", document.path)
        return changed

    async def _run_dry(self, document: Document, pause: float) -> None:
        """Run programs for their calls, and trace the functions that have inputs from these."""
        await asyncio.sleep(pause)
        path, dry_runs = document.path, self._engine.dry_runs
        outdated = not dry_runs.is_current(document)
        changed = await self._settle(document)
        if not changed and dry_runs.are_inputs(document):
            changed = await self._trace_all(document)
        await self._engine.traces.program(document, wait=True)
        if outdated:  # calls were shown as stale until the last program had run
            self._engine.waiting.refresh(path)
        if changed:
            await asyncio.gather(self._name_sizes(path), self._compile(path))
        if needs_kernels(self._engine.projects.of(path).settings.inlay_hints):
            await compiled_parts(self._engine, document, wait=True)
            self._engine.waiting.refresh(path)

    async def settle(self, path: str, *, only: str = "", patience: float = BUDGET) -> float:
        """Find the inputs of a document's functions now, in the order of the background.

        Returns the seconds that it took to find those that nobody wrote.

        Args:
            path: an open document.
            only: the function to propose inputs for, by default each that is worth it.
            patience: seconds after which no further proposal is tried; programs run for half of it.
        """
        self.stop(path)
        engine = self._engine
        if (document := await engine.documents.read(path)) is None:
            return 0.0
        await self._trace_all(document)
        clock = asyncio.get_running_loop().time
        began = clock()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience / 2):  # proposals have the rest
                await self._settle(document)
        settings, left = engine.projects.of(path).settings, began + patience - clock()
        if settings.propose_inputs and settings.examples_assumed and left > 0:
            await assume(engine, path, left, only)
        return clock() - began

    async def _trace_functions(self, document: Document, *, in_programs: bool) -> bool:
        """Trace functions of a document without an answer; return whether all could be asked.

        Args:
            document: the document.
            in_programs: whether also those for which a program has to run.
        """
        engine, path = self._engine, document.path
        rank = functools.partial(engine.attention.rank, path)
        for earlier in sorted(
            engine.documents.subjects(document),
            key=lambda subject: (subject.is_proposed, rank(subject.range)),
        ):
            await engine.turns.breathe()
            # Its example inputs may be others by now: a question about the old ones would cancel
            # that about the new ones.
            if (subject := named(engine.documents.subjects(document), earlier.id)) is None:
                continue
            question = await engine.traces.question(document, subject)
            if isinstance(question, Unasked):
                continue
            known = engine.traces.cache.cached(question)
            # What fails may have been asked about by a hover, which prefers no other inputs.
            if known is not None and (
                isinstance(known.reply, Traced) or subject.examples.are_written
            ):
                continue
            if question.trace.dry_call is not None and not in_programs:
                continue
            try:
                seen = engine.attention.urgency(path, subject.range) is Priority.SCREEN
                priority = Priority.SCREEN if seen else Priority.DOCUMENT
                answer = await engine.traces.answer(question, priority)
                is_traced = isinstance(answer.reply, Traced)
                if not is_traced and await prefer_traced(engine, document, subject):
                    self._rejecting.add(path)
            except Superseded:
                # Another question about the function replaced this one, such as one about an older
                # text whose trace was gone. Start over, or no refresh would follow.
                if self._tasks.get(path) is asyncio.current_task():
                    self.schedule(path)
                return False
            except Exception:
                log.exception("tracing %s of %s in the background", subject.name, path)
                return False
            engine.waiting.refresh(path)
        return True

    async def _name_sizes(self, path: str) -> None:
        """Trace functions with other sizes to name sizes, and send one refresh for all of them."""
        engine = self._engine
        document = engine.documents.get(path)
        hints = engine.projects.of(path).settings.inlay_hints
        if document is None or not (hints.shapes and hints.size_names):
            return
        named = False
        for view in await engine.traces.cached_views(document):
            if engine.sizes.cached(view.answer) is None:
                try:
                    named |= bool((await engine.sizes.explored(view.answer)).names)
                except Exception:
                    log.exception("naming sizes of %s of %s", view.subject.name, path)
        if named:
            engine.waiting.refresh(path)

    async def _propose(self, path: str, budget: float, pause: float = 0.0) -> None:
        """Try proposed example inputs of functions without any, and compile those shown."""
        engine = self._engine
        document = engine.documents.get(path)
        project = engine.projects.of(path)
        settings = project.settings
        if document is None or not settings.propose_inputs:
            return
        if not (settings.examples_assumed or engine.proposals.is_watched(path)):
            return
        if project.held_back:
            if settings.examples_assumed and is_worth_proposing(engine, document):
                project.ask_consent()
            return
        await asyncio.sleep(pause)
        before = document.proposed
        await assume(engine, path, budget)
        if document.proposed != before and budget == BUDGET:
            await self._compile(path)

    async def _compile(self, path: str) -> None:
        """Compile traced functions for the first target, one by one, if hints show kernels.

        The kernels of all of them come before the memory of any.
        """
        engine = self._engine
        document = engine.documents.get(path)
        if document is None or not needs_kernels(engine.projects.of(path).settings.inlay_hints):
            return
        rank = functools.partial(engine.attention.rank, path)
        for with_memory in (False, True):
            views = await engine.traces.views(document, 0)  # all that can be traced now are
            for view in sorted(views, key=lambda view: rank(view.subject_range)):
                if engine.documents.get(path) is not document:
                    return
                try:
                    await self._compile_one(view, with_memory)
                except Exception:
                    log.exception("compiling %s of %s in the background", view.subject.name, path)
                    return

    async def _compile_one(self, view: View, with_memory: bool) -> None:
        engine, path = self._engine, view.answer.question.path
        target = engine.choices.target(path)
        if view.stale or engine.programs.is_compiled(view, target, with_memory=with_memory):
            return
        compile = engine.programs.with_temporaries if with_memory else engine.programs.result
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_SHOWN_AFTER, lambda: engine.waiting.refresh(path))
        try:
            result = await compile(view)
        finally:
            timer.cancel()
        if result is not None:
            engine.waiting.refresh(path)
