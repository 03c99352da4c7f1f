"""The programs of traced functions: as plain data, and compiled for targets."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jaxsight.figures.figures import AnyFigures
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import Attention, UserChoices
from jaxsight.queries.long_work import SharedWork
from jaxsight.queries.memory import ByFunction, SessionMemory
from jaxsight.queries.programs.compile_cache import CompileCache, TraceGone
from jaxsight.queries.programs.disk_cache import DiskCache
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.queries.traces.traces import DocumentTraces
from jaxsight.rules.program.work import is_worth_measuring
from jaxsight.targets.target import Target
from jaxsight.text.inert import words
from jaxsight.wire.messages.compiling import Compiled, Folding
from jaxsight.wire.messages.replies import Failed, Outlined
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.request_queue import Priority
from jaxsight.workers.results import Died

T = TypeVar("T")

LONG_COMPILE = 1.0
"""Seconds of compiling after which that is shown in a hint, a choice: shorter would flicker."""

ERRORS_HELD = 60.0
"""Seconds after which a contract that could not be checked is tried again: a host may be back."""


@dataclass(eq=False, slots=True)
class Programs:
    """The outlines and compiled programs of traced functions."""

    _projects: Projects
    _traces: DocumentTraces
    _choices: UserChoices
    _memory: SessionMemory
    _attention: Attention
    _compiling: CompileCache | None = None
    _unsaved: set[str] = field(default_factory=set)
    _measuring: SharedWork[tuple[str, str, str], Any] = field(default_factory=SharedWork)
    """Measurements of constant folding, by file, function, and key of the answer."""
    _since: dict[ByFunction, list[float]] = field(default_factory=dict)
    """When the compiles that run now for the first target began, by file and function."""

    def compiling(self) -> CompileCache:
        """Return the compilers of the session, which start at the first compile."""
        if self._compiling is None:
            settings = self._projects.any_settings
            self._compiling = CompileCache(
                self._projects.events,
                Compilers(
                    memory=settings.memory_limit,
                    deadline=settings.timeouts.compile,
                    remote_python=settings.compiler.remote_python,
                ),
                DiskCache(limit=settings.cache.size),
                lambda path, host: self._projects.of(path).not_sent(host),
                self._memory,
            )
        return self._compiling

    @property
    def have_started(self) -> bool:
        """Whether anything has been compiled, or tried, in this session."""
        return self._compiling is not None

    @property
    def compiles(self) -> int:
        """The number of programs that were compiled, without those from a cache."""
        return self._compiling.compilers.compiled if self._compiling is not None else 0

    def edited(self, path: str) -> None:
        """Take note that the text of a file differs from the file."""
        self._unsaved.add(path)

    def is_saved(self, path: str) -> bool:
        """Return whether a file's text was not edited since it was opened or saved."""
        return path not in self._unsaved

    def saved(self, path: str) -> None:
        """Show changes relative to a file's programs as of now."""
        self._unsaved.discard(path)
        for key, (_, figures) in self._memory.shown.items():
            if key[0] == path:
                self._memory.saved.put((*key, figures.target.name), figures.compiled)

    def close(self, path: str) -> None:
        """Stop the measurements of a file that was closed."""
        self._unsaved.discard(path)
        self._measuring.cancel(path)

    async def outline(self, view: View) -> Outlined | None:
        """Return the traced program as plain data.

        Returns `None` if it is gone, or if it is of an older text and not cached.
        """
        key = view.answer.question.key
        cached = self._memory.outlines.get(key)
        if cached is not None and cached[0] is view.answer:
            return cached[1]
        if view.stale:
            return None
        project = self._projects.of(view.answer.question.path)
        if (outlined := await tracer_requests.outline(project, view.answer)) is None:
            try:
                # A tracer keeps few traces: trace again, and outline at once.
                answer = await self._traces.traced_again(view.answer)
                outlined = await tracer_requests.outline(project, answer)
            except Superseded:
                return None
        if outlined is not None:
            self._memory.outlines.put(key, (view.answer, outlined))
        return outlined

    async def result(
        self,
        view: View,
        target: Target | None = None,
        *,
        complete: bool = False,
        urgency: Priority | None = None,
    ) -> Compilation | None:
        """Return the result for a target, by default the first; `None` if it was not traced.

        What the file's own program does not compile by itself is only for whoever asks for it.

        Args:
            view: the function.
            target: the target.
            complete: whether the compile must be complete, which takes longer.
            urgency: decides what is compiled next; by default by where the user looks.
        """
        question = view.answer.question
        project = self._projects.of(question.path)
        if not view.is_traced or project.interpreter is None:
            return None
        if view.compiled_as and urgency is None and project.settings.kernels == "compiled":
            return None
        first = self._choices.target(question.path)
        target = first if target is None else target
        traced = await self._traces.for_target(view, target)
        answer = traced.answer
        if isinstance(answer.reply, Died):
            return Refused(target, Trouble("lower", answer.reply.message))
        if isinstance(answer.reply, Failed):  # there is a trace for the target that is shown
            why = f"tracing for {target.short} fails: {words(answer.reply.failure.message)}"
            return Refused(target, Trouble("lower", why))
        if urgency is None:
            urgency = self._attention.urgency(question.path, traced.subject_range)
        compiled = functools.partial(
            self.compiling().get,
            target=target,
            python=project.interpreter.path,
            lower=functools.partial(tracer_requests.lower, project, urgency=urgency),
            complete=complete,
            urgency=urgency,
        )
        running = self._timed(traced) if target == first else contextlib.nullcontext()
        with running:
            try:
                result = await compiled(answer)
            except TraceGone:
                try:
                    # A tracer keeps few traces: trace again, and lower at once.
                    answer = await self._traces.traced_again(answer)
                    result = await compiled(answer)
                except (TraceGone, Superseded):
                    return None
        if target == first:
            self._remember(traced, answer, result)
        return LocatedFigures.at(view, result)

    @contextlib.contextmanager
    def _timed(self, view: View) -> Iterator[None]:
        """Remember that a function is being compiled, and since when."""
        key = view.answer.question.path, view.subject.id
        begin = asyncio.get_running_loop().time()
        self._since.setdefault(key, []).append(begin)
        try:
            yield
        finally:
            self._since[key].remove(begin)
            if not self._since[key]:
                del self._since[key]

    def compiles_long(self, view: View) -> bool:
        """Return whether a function is being compiled for the first target for a while already."""
        since = self._since.get((view.answer.question.path, view.subject.id), ())
        now = asyncio.get_running_loop().time()
        return any(now - begin >= LONG_COMPILE for begin in since)

    def _remember(self, view: View, answer: Answer, result: AnyFigures | Refused) -> None:
        """Remember the result for the first target, for what is shown until the next one."""
        key = answer.question.path, view.subject.id
        self._memory.refused.pop(key)
        if isinstance(result, Refused):
            self._memory.refused.put(key, (answer, result))
        elif self._traces.is_chosen(view):
            last = self._memory.shown.get(key)
            if last is not None and last[0] is answer and last[1] is result:
                return  # a hover of what is known
            if not result.is_complete:
                self._memory.until_kernels.put(key, result.compiled.seconds)
            before = self.before(view)
            is_saved = self.is_saved(answer.question.path) or last is None
            is_newer = last is None or last[0] is not answer or last[1].target != result.target
            if last is not None and not is_newer:
                if not result.is_complete and last[1].is_complete:
                    return
                is_saved |= last[1].compiled is before
            self._memory.shown.put(key, (answer, result))
            if is_saved:
                self._memory.saved.put((*key, result.target.name), result.compiled)

    async def with_temporaries(
        self, view: View, target: Target | None = None, *, urgency: Priority | None = None
    ) -> Compilation | None:
        """Return the result for a target whose temporaries are known; see `result`."""
        target = target or self._choices.target(view.answer.question.path)
        is_soon = environments.assigns_memory_early(target)
        result = await self.result(view, target, complete=not is_soon, urgency=urgency)
        if result is None or result.knows_temporaries:
            return result
        return await self.result(view, target, complete=True, urgency=urgency)

    async def held_result(
        self, view: View, target: Target, *, with_memory: bool = False
    ) -> Compilation | None:
        """Return the result for a target that may be remote.

        An error, such as that of an unreachable host, is cached for a while.
        """
        key = view.answer.key, target.name, with_memory
        held = self._memory.held
        if (task := held.get(key)) is None:
            result_of = self.with_temporaries if with_memory else self.result
            task = asyncio.create_task(result_of(view, target))
            held.put(key, task)
            task.add_done_callback(functools.partial(self._end_held, key))
        result = await asyncio.shield(task)
        # An edit that only moved the function changes its places, not its answer.
        return LocatedFigures.at(view, result) if result is not None else None

    def _end_held(self, key: tuple[str, str, bool], task: asyncio.Task[Compilation | None]) -> None:
        """Drop a failure, and after a while a result that may be another one by then."""
        drop = functools.partial(self._memory.held.pop, key)
        if task.cancelled() or task.exception() is not None:
            drop()
        elif (result := task.result()) is None or (
            isinstance(result, Refused) and not result.trouble.last
        ):
            asyncio.get_running_loop().call_later(ERRORS_HELD, drop)

    def kernels(self, view: View) -> LocatedFigures | None:
        """Return a function's kernels on the first target, without compiling it.

        Until the current text is compiled, they are those of its last program.
        """
        path = view.answer.question.path
        target = self._choices.target(path)
        if self._compiling is None:
            return None
        if (result := self._compiling.cached(view.answer, target)) is not None:
            return _compiled(view, result)
        last = self._memory.shown.get((path, view.subject.id))
        if last is None or last[1].target != target:
            return None
        return self._earlier(view, *last, "compiled")

    def kernels_then(self, view: View, then: Answer, target: Target) -> LocatedFigures | None:
        """Return the kernels of an earlier answer about a function, in the current text.

        Returns `None` if what was compiled then is no longer known.
        """
        cached = self._memory.results.get((then.question.key, target.name))
        if cached is None or cached[0].key != then.key:
            return None
        return self._earlier(view, *cached, "measured")

    def _earlier(
        self, view: View, answer: Answer, result: AnyFigures | Refused, role: str
    ) -> LocatedFigures | None:
        """Return the kernels of an earlier answer about a function, in the current text."""
        located = self._traces.located(
            answer, view.module, None, view.subject, view.failed, role=role
        )
        return _compiled(located, result)

    def is_compiled(self, view: View, target: Target, *, with_memory: bool = False) -> bool:
        """Return whether the current program of a function is compiled for a target.

        Args:
            view: the function.
            target: the target.
            with_memory: whether the size of its temporaries must be known.
        """
        known = self.compiling().cached(view.answer, target)
        return known is not None and (known.knows_temporaries or not with_memory)

    def is_quick(self, view: View, patience: float) -> bool:
        """Return whether a function is not compiled yet, and its kernels are likely known soon."""
        key = view.answer.question.path, view.subject.id
        seconds = self._memory.until_kernels.get(key)
        if view.stale or seconds is None or seconds > patience or not view.is_traced:
            return False
        return not self.is_compiled(view, self._choices.target(view.answer.question.path))

    def was_compiled(self, view: View) -> bool:
        """Return whether any program of the function has been compiled for the first target."""
        key = view.answer.question.path, view.subject.id
        return self._memory.shown.get(key) is not None

    def before(self, view: View) -> Compiled | None:
        """Return the program of a function for the first target when its file was last saved."""
        path = view.answer.question.path
        target = self._choices.target(path).name
        return self._memory.saved.get((path, view.subject.id, target))

    def refusal(self, view: View) -> Refused | None:
        """Return why an answer was not compiled for the first target, if so."""
        last = self._memory.refused.get((view.answer.question.path, view.subject.id))
        return last[1] if last is not None and last[0] is view.answer else None

    async def folding(self, view: View, result: Compilation) -> Folding | None:
        """Return the compile times of a function with and without constant folding.

        Returns `None` if it is not worth measuring. A new program of the function cancels the
        measurement.
        """
        project = self._projects.of(view.answer.question.path)
        interpreter = project.interpreter
        key = view.answer.question.path, view.subject.id, view.answer.key
        self._measuring.cancel_if(lambda each: each[:2] == key[:2] and each != key)
        if (
            interpreter is None
            or isinstance(result, Refused)
            or not is_worth_measuring(result.lowered.folds)
        ):
            return None
        python = interpreter.path
        lower = functools.partial(tracer_requests.lower, project)

        async def measure() -> Folding | None:
            return await self.compiling().folding(view.answer, result.target, python, lower)

        with contextlib.suppress(TraceGone):
            measured: Folding | None = await self._measuring.get(key, measure)
            return measured
        return None

    async def aclose(self) -> None:
        """Cancel all work, and end the compilers."""
        self._measuring.cancel()
        if self._compiling is not None:
            await self._compiling.aclose()


def _compiled(view: View, result: AnyFigures | Refused) -> LocatedFigures | None:
    located = LocatedFigures.at(view, result)
    return None if isinstance(located, Refused) else located
