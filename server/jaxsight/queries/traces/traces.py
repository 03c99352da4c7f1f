"""Views of functions: their questions, the answers to them, and these in the current text."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.sets import ExampleSet
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import UserChoices
from jaxsight.queries.documents import Document, OpenDocuments, Subject
from jaxsight.queries.dry_runs.dry_runs import ProgramCalls
from jaxsight.queries.long_work import JobQueue, Turns
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.sizes.naming import SizeNames
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.queries.traces.query import Question, Unasked, ask
from jaxsight.queries.traces.trace_cache import Superseded, TraceCache
from jaxsight.queries.traces.tracer_requests import Waits, waits
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.targets.target import Target
from jaxsight.workers.compilation.default_target import own_target
from jaxsight.workers.supervisor import Priority


@dataclass(eq=False, slots=True)
class DocumentTraces:
    """The traces of all open documents, each traced when it is first asked for."""

    _documents: OpenDocuments
    _projects: Projects
    _choices: UserChoices
    _dry_runs: ProgramCalls
    _memory: SessionMemory
    _aside: JobQueue
    _turns: Turns
    cache: TraceCache

    async def question(
        self, document: Document, subject: Subject, example_set: ExampleSet | None = None
    ) -> Question | Unasked:
        """Return the question about a function with an example set, by default the active one."""
        if example_set is None:
            example_set = self._choices.set_of(document, subject)
        if example_set is None:
            return Unasked("the example inputs have errors")
        project = self._projects.of(document.path)
        if project.held_back:
            project.ask_consent()
            return Unasked(project.held_back)
        module = document.module
        target = self._choices.target(document.path)
        asking = functools.partial(
            ask,
            document,
            subject,
            example_set,
            project,
            module=module,
            devices=target.devices,
            device=target.device,
        )
        question = await self._aside.judge(module, asking)
        if document.module is not module:
            return Unasked("the text is being edited")
        return question

    async def answer(self, question: Question, priority: Priority = Priority.DOCUMENT) -> Answer:
        """Return the answer to a question, which is asked before less urgent ones.

        Raises:
            Superseded: a newer question about the same function arrived meanwhile.
        """
        if priority is not Priority.PERSON:
            await self._turns.breathe(waiting=priority is Priority.SCREEN)
        project = self._projects.of(question.path)
        tracing = functools.partial(tracer_requests.trace, project)
        answer = await self.cache.get(question, tracing, priority)
        document = self._documents.get(question.path)
        if not answer.wants_whole or question.trace.whole or document is None:
            return answer
        document.looked_into = True
        again = await self.question(document, question.subject)
        return answer if isinstance(again, Unasked) else await self.answer(again, priority)

    async def for_target(self, view: View, target: Target) -> View:
        """Return a view of the program that the function is for another target.

        It is the same view unless code asks for the platform.
        """
        question = view.answer.question
        if not view.answer.asks_platform:
            return view
        device = own_target(target, os.environ).device
        if question.trace.device == device:
            return view
        other = replace(question, trace=replace(question.trace, device=device))
        tracing = functools.partial(tracer_requests.trace, self._projects.of(question.path))
        answer = await self.cache.for_device(other, tracing, Priority.DOCUMENT)
        current = None if view.stale else other
        return self.located(answer, view.module, current, view.subject, role=target.name)

    async def traced_again(self, answer: Answer) -> Answer:
        """Return a new answer like one whose trace the tracer no longer keeps.

        Raises:
            Superseded: a newer question about the same function arrived meanwhile, or a file that
                the answer was made of has changed.
        """
        self.cache.drop(answer.question)
        again = await self.answer(answer.question)
        if again.key != answer.key:
            raise Superseded(answer.question.subject.name)
        return again

    async def may_reach(self, document: Document, subject: Subject, chunk: ModuleChunk) -> bool:
        """Return whether the subject's trace may have reached a chunk, without tracing it."""
        question = await self.question(document, subject)
        return isinstance(question, Unasked) or any(
            needed.first_line == chunk.first_line for needed in question.slice.module_chunks
        )

    def latest(self, document: Document, subject: Subject) -> Answer | None:
        """Return the last answer about a function with its active example set."""
        example_set = self._choices.set_of(document, subject)
        set_name = example_set.name if example_set is not None else ""
        return self._memory.latest.get((document.path, subject.id, set_name))

    async def view(
        self, document: Document, subject: Subject, patience: float | None
    ) -> View | Unasked:
        """Return the view of a subject in the current text.

        It is stale if `patience` runs out and there is an older answer.
        """
        module = document.module
        question = await self.question(document, subject)
        outdated = subject.is_called and subject.id in self._outdated_calls(document)
        latest = self.latest(document, subject)
        if isinstance(question, Unasked):
            if latest is None or self._projects.of(document.path).held_back:
                return question
            return self.located(latest, module, None, subject)
        answer: Answer | None = None
        try:
            asking = self.answer(question, Priority.PERSON)
            if patience is None:
                answer = await asking
            elif latest is None:
                first = await self._first(question, asking, patience)
                if isinstance(first, Waits):
                    return first
                answer = first
            else:
                answer = await asyncio.wait_for(asking, patience)
        except TimeoutError:
            answer = latest
        except Superseded:
            answer = latest
            standing = named(self._documents.subjects(document), subject.id)
            if answer is None and document.module is module and standing is not None:
                # The settings changed, not the text, so the question has another key now.
                return await self.view(document, standing, patience)
        if answer is None:
            return Unasked("the text is being edited")
        if answer.question.trace.whole != question.trace.whole:
            question = answer.question
        return self.located(answer, module, None if outdated else question, subject)

    async def _first(
        self, question: Question, asking: Coroutine[None, None, Answer], patience: float
    ) -> Answer | Waits:
        """Return the first answer about a function, or what it waits for if that takes long.

        The trace goes on.
        """
        task = asyncio.ensure_future(asking)
        began = time.monotonic()
        try:
            while not (await asyncio.wait([task], timeout=patience))[0]:
                held = self.waits(question)
                if held is not None and held.is_long(time.monotonic() - began):
                    return held
            return task.result()
        finally:
            task.cancel()

    def waits(self, question: Question) -> Waits | None:
        """Return what a question waits for; `None` if it is not being answered."""
        asked = self.cache.waits_since(question)
        project = self._projects.of(question.path)
        return waits(project, question.path, *asked) if asked is not None else None

    async def views(
        self,
        document: Document,
        patience: float | None,
        priority: Priority = Priority.DOCUMENT,
    ) -> list[View]:
        """Return the views of all subjects of a document.

        Waits at most `patience` seconds for new answers. Functions with example inputs of a dry run
        are not waited for, but traced in the background.
        """
        module = document.module
        on_screen = priority <= Priority.SCREEN
        questions: list[tuple[Subject, Question | Unasked]] = []
        for subject in self._documents.subjects(document):
            await self._turns.breathe(waiting=on_screen)
            questions.append((subject, await self.question(document, subject)))
        unknown = [
            question
            for subject, question in questions
            if isinstance(question, Question)
            and (patience is None or not question.trace.dry_call)
            and self.cache.cached(question) is None
        ]
        if unknown:
            tasks = [asyncio.ensure_future(self.answer(asked, priority)) for asked in unknown]
            try:
                await asyncio.wait(tasks, timeout=patience)
            finally:  # questions without an answer are given up
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            for error in ended:
                if isinstance(error, Exception) and not isinstance(error, Superseded):
                    raise error
            if document.looked_into and not all(q.trace.whole for q in unknown):
                return await self.views(document, patience, priority)
        outdated = self._outdated_calls(document)
        views: list[View] = []
        for subject, question in questions:
            await self._turns.breathe(waiting=on_screen)
            current = question if isinstance(question, Question) else None
            answer = self.cache.cached(current) if current is not None else None
            if answer is None:
                answer = self.latest(document, subject)
            if subject.id in outdated:
                current = None
            if answer is not None:
                views.append(await self.placed(self.located(answer, module, current, subject)))
        return views

    async def program(self, document: Document, *, wait: bool = False) -> View | None:
        """Return what the top level of a document computes, as far as it is known.

        Args:
            document: an open document.
            wait: whether to ask for it, unless its text has not been run yet.
        """
        subject = self._dry_runs.program(document)
        return await self._run(document, subject, wait=wait) if subject is not None else None

    async def programs_in(self, document: Document, *, wait: bool = False) -> list[View]:
        """Return the programs that XLA gets from it without that one function is all of them."""
        subjects = self._dry_runs.programs_in(document)
        views = [await self._run(document, subject, wait=wait) for subject in subjects]
        return [view for view in views if view is not None]

    async def _run(self, document: Document, subject: Subject, *, wait: bool) -> View | None:
        module, question = document.module, await self.question(document, subject)
        if not isinstance(question, Question):
            return None
        answer = self.cache.cached(question)
        if answer is None and wait and self._dry_runs.is_current(document):
            with contextlib.suppress(Superseded):
                answer = await self.answer(question, Priority.BACKGROUND)
        answer = answer or self.latest(document, subject)
        if answer is None:
            return None
        return await self.placed(self.located(answer, module, question, subject))

    def _outdated_calls(self, document: Document) -> frozenset[str]:
        """Return the functions whose example inputs are calls of earlier texts.

        A trace with the call of a dry run makes that call anew.
        """
        sets = (
            (subject.id, self._choices.set_of(document, subject))
            for subject in self._documents.subjects(document)
            if subject.is_called
        )
        ids = [id for id, chosen in sets if chosen is not None and chosen.dry_call is None]
        return self._dry_runs.outdated(document, ids) if ids else frozenset()

    async def cached_views(self, document: Document) -> list[View]:
        """Return the views of current answers that are cached, without tracing anything."""
        views: list[View] = []
        for subject in self._documents.subjects(document):
            await self._turns.breathe()
            question = await self.question(document, subject)
            if isinstance(question, Question) and (answer := self.cache.cached(question)):
                views.append(self.located(answer, document.module, question, subject))
        return views

    async def placed(self, view: View) -> View:
        """Return the view after finding the places of its observations, in a thread if large."""
        if view.is_large:
            await self._aside.run(lambda: view.observed, waiting=True)
        return view

    def last_traced(self, view: View) -> View | None:
        """Return the last trace of a function whose newest trace failed, in the current text."""
        if view.is_traced:
            return None
        question = view.answer.question
        last = self._memory.traced.get((question.path, view.subject.id, question.set.name))
        if last is None:
            return None
        return self.located(last, view.module, None, view.subject, view, role="traced")

    def is_chosen(self, view: View) -> bool:
        """Return whether a view is of the active example set."""
        document = self._documents.get(view.answer.question.path)
        active = self._choices.set_of(document, view.subject) if document is not None else None
        return active is None or active.name == view.answer.question.set.name

    def located(
        self,
        answer: Answer,
        module: Module,
        current: Question | None,
        subject: Subject,
        failed: View | None = None,
        *,
        role: str = "latest",
    ) -> View:
        """Return the view of an answer in the module, cached because moving spans takes time.

        Args:
            current: the current question about the function. An answer that was made of other texts
                of other files does not answer it.
            failed: the newest answer, if it is an error and `answer` is an earlier one.
            role: which of a function's answers this is; each has its own cached view.
        """
        if current is not None and not self.cache.is_current(answer):
            current = None
        unit = answer.question.path, subject.id, role
        view = self._memory.views.get(unit)
        if view is None or not view.still(answer, module, current, failed):
            view = View(answer, module, current, subject, failed)
            self._memory.views.put(unit, view)
        self.name_sizes(view)
        return view

    def name_sizes(self, view: View) -> None:
        """Give a view the names of sizes that are known, if the settings show them."""
        question = view.answer.question
        explored = self._memory.sizes.get((question.unit, view.answer.key))
        settings = self._projects.of(question.path).settings.inlay_hints
        wanted = settings.size_names or bool(view.assumed)
        view.size_names = explored.names if explored is not None and wanted else SizeNames()


def named(subjects: Sequence[Subject], id: str) -> Subject | None:
    """Return the function with an id, such as its qualified name; `None` if there is none."""
    return next((subject for subject in subjects if subject.id == id), None)
