"""Trace and compile the functions of open documents in the background, after a pause in typing."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable

from jaxsight.features.inlay_hints.hints import needs_kernels
from jaxsight.features.proposals.functions import worth_proposing
from jaxsight.features.setup.file_status import FileStatuses
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.open_documents import loop_runs
from jaxsight.queries.programs.programs import LONG_COMPILE
from jaxsight.queries.proposals.proposals import show as use_proposal
from jaxsight.queries.schedule import debounce
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.workers.compilation.queue import Urgency
from jaxsight.workers.supervisor import Priority

log = logging.getLogger(__name__)

_PROPOSING_PAUSE = 1.0
"""Seconds without an edit after which example inputs are proposed."""

_SHOWN_AFTER = LONG_COMPILE + 0.1
"""Seconds after which a hint says that a function is being compiled."""


class Background:
    """One task for each document, which an edit replaces."""

    def __init__(self, engine: Engine, before: Callable[[], None]) -> None:
        """Create it without tasks; `before` is called before a document is traced."""
        self._engine = engine
        self._statuses = FileStatuses(engine)
        self._before = before
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def schedule(self, path: str) -> None:
        """Trace a document after a pause, in place of what is scheduled for it."""
        self.stop(path)
        if loop_runs():
            self._tasks[path] = asyncio.create_task(self._trace(path), name=f"trace {path}")

    def schedule_all(self) -> None:
        """Trace all documents again."""
        for path in self._engine.documents.by_path:
            self.schedule(path)

    def schedule_called(self, caller: str = "") -> None:
        """Trace the documents again whose functions have other example inputs from callers.

        Args:
            caller: a document that is being traced, which is left out.
        """
        self._engine.callers.update()
        for path in self._engine.callers.changed() - {caller}:
            self.schedule(path)

    def schedule_importers(self, path: str) -> None:
        """Trace the documents again whose answers were made of a file whose text has changed."""
        for importer in self._engine.traces.cache.importers(path):
            if self._engine.documents.get(importer) is not None:
                self.schedule(importer)

    def stop(self, path: str) -> None:
        """Cancel what is scheduled for a document."""
        if (task := self._tasks.pop(path, None)) is not None:
            task.cancel()
        self._engine.sizes.cancel(path)

    def close(self, path: str) -> None:
        """Stop, and forget a document."""
        self.stop(path)
        self._statuses.forget(path)

    def stop_all(self) -> None:
        """Cancel everything."""
        for path in list(self._tasks):
            self.stop(path)

    async def _trace(self, path: str) -> None:
        """Trace the functions without an answer, send refreshes, and compile."""
        engine = self._engine
        await asyncio.sleep(debounce(engine.traces.cache.seconds(path)))
        await engine.turns.breathe()
        document = await engine.documents.read(path)
        if document is None:
            return
        self._before()
        await self._statuses.update(document)
        if not await self._trace_all(document):
            return
        self.schedule_called(path)
        engine.waiting.refresh(path)
        await asyncio.gather(self._name_sizes(path), self._compile(path))
        await self._propose(path)
        if (document := engine.documents.get(path)) is not None:
            await self._statuses.update(document)

    async def settle(self, path: str, *, only: str = "", patience: float | None = None) -> float:
        """Find the example inputs of a document's functions now, in the order of the background.

        Proposals that can be traced are used from then on. Returns the seconds that they took.

        Args:
            path: an open document.
            only: the function to propose inputs for, by default each that is worth it.
            patience: seconds after which nothing more is proposed; without it, no limit.
        """
        self.stop(path)
        engine = self._engine
        document = await engine.documents.read(path)
        if document is None:
            return 0.0
        await self._trace_all(document)
        subjects = engine.documents.subjects(document)
        if only:
            worth = [pair for pair in document.module.functions if pair[1].qualname == only]
        else:
            worth = list(worth_proposing(document, subjects))
        having = {subject.name for subject in subjects if subject.examples.sets}
        now = asyncio.get_running_loop().time
        began = now()
        ends = None if patience is None else began + patience
        for chunk, function in worth:
            if function.qualname in having or function.refused:
                continue
            if ends is not None and now() >= ends:
                break
            try:
                async with asyncio.timeout_at(ends):
                    outcome = await engine.proposals.outcome(document, chunk, function)
            except TimeoutError:
                break
            except Exception:
                log.exception("proposing inputs of %s of %s", function.qualname, path)
                continue
            if outcome is not None and outcome.traced and not outcome.trivial:
                use_proposal(document, function.qualname, outcome.traced[0].text)
        return now() - began

    async def _trace_all(self, document: Document) -> bool:
        """Trace the functions of a document; return whether all could be asked.

        Functions with example inputs of their own come first: their traces call the others.
        """
        for from_callers in (False, True):
            self._engine.callers.update()
            if not await self._trace_functions(document, from_callers=from_callers):
                return False
        return True

    async def _trace_functions(self, document: Document, *, from_callers: bool) -> bool:
        """Trace functions of a document without an answer; return whether all could be asked.

        Args:
            document: the document.
            from_callers: whether those with example inputs from callers, or the others.
        """
        engine, path = self._engine, document.path
        rank = functools.partial(engine.attention.rank, path)
        subjects = (
            subject
            for subject in engine.documents.subjects(document)
            if subject.is_from_caller == from_callers
        )
        for subject in sorted(subjects, key=lambda subject: rank(subject.range)):
            await engine.turns.breathe()
            question = await engine.traces.question(document, subject)
            if isinstance(question, Unasked) or engine.traces.cache.known(question) is not None:
                continue
            try:
                seen = engine.attention.urgency(path, subject.range) is Urgency.SEEN
                priority = Priority.SCREEN if seen else Priority.DOCUMENT
                await engine.traces.answer(question, priority)
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
        for view in await engine.traces.known_views(document):
            if engine.sizes.known(view.answer) is None:
                try:
                    named |= bool((await engine.sizes.explored(view.answer)).names)
                except Exception:
                    log.exception("naming sizes of %s of %s", view.subject.name, path)
        if named:
            engine.waiting.refresh(path)

    async def _propose(self, path: str) -> None:
        """Try proposed example inputs of functions without any, those on screen first."""
        engine = self._engine
        document = engine.documents.get(path)
        project = engine.projects.of(path)
        if document is None or not engine.proposals.is_watched(path) or project.held_back:
            return
        await asyncio.sleep(_PROPOSING_PAUSE)
        rank = functools.partial(engine.attention.rank, path)
        subjects = engine.documents.subjects(document)
        worth = sorted(
            worth_proposing(document, subjects),
            key=lambda pair: rank(pair[1].range.shifted(pair[0].first_line)),
        )
        for chunk, function in worth:
            if engine.proposals.known(document, chunk, function) is not None:
                continue
            try:
                outcome = await engine.proposals.outcome(document, chunk, function)
            except Exception:
                log.exception("proposing inputs of %s of %s", function.qualname, path)
                return
            if outcome is not None and outcome.traced:
                engine.waiting.refresh(path)

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
            views = await engine.traces.views(document, None)
            for view in sorted(
                views, key=lambda view: (view.subject.is_from_caller, *rank(view.subject_range))
            ):
                if engine.documents.get(path) is not document:
                    return
                try:
                    await self._compile_one(view, with_memory)
                except Exception:
                    log.exception("compiling %s of %s in the background", view.subject.name, path)
                    return

    async def _compile_one(self, view: View, with_memory: bool) -> None:
        engine, path = self._engine, view.answer.question.path
        targets = engine.choices.targets(path)
        if view.stale or not targets:
            return
        if engine.programs.is_compiled(view, targets[0], with_memory=with_memory):
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
