"""Compile traced functions for targets.

The tracer that traced a function lowers it; a compiler compiles it unless the result is cached.
Each stage is cached by content. An answer is lowered once for a platform (and for each compute
capability of NVIDIA GPUs, as Pallas kernels differ). A program is compiled once for a target,
whichever file it is in, and results are stored on disk. An edit that does not change the program
compiles nothing. A failure is a `Trouble` with a message.

A compile has two tiers: kernels are known when XLA has scheduled the program, memory when the
compile is complete (for GPUs that are not present, temporaries are known with the kernels). A
caller says whether it needs a complete one, and gets that whenever there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from jaxsight.compiler import folding
from jaxsight.events import Event
from jaxsight.figures.figures import AnyFigures, Figures
from jaxsight.queries.choices import environment_of
from jaxsight.queries.long_work import end, forget, progress
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.programs.disk_cache import DiskCache, digest
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.targets.target import Target
from jaxsight.text.inert import words
from jaxsight.wire.messages.compiling import Compile, Compiled, Folding
from jaxsight.wire.messages.replies import Failed, Lowered
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.compilation.default_target import own_target
from jaxsight.workers.compilation.environments import CompilerEnvironment, ends_early, identity
from jaxsight.workers.request_queue import Priority
from jaxsight.workers.results import Died

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_AGAIN = 0.1
"""Seconds after which a process looks again for a result that another process makes: not felt."""

_PATIENCE = 30.0
"""Seconds to wait for such a result, a choice; then both make it, as the other may be stopped."""

LONG = 0.7
"""Seconds of a compile after which progress is shown, a choice: with less, it would flicker."""

NotSent = Callable[[str, str], str]
"""Returns why no program of a file is compiled on a host, given both; empty if it is allowed."""

Lower = Callable[[Answer, Target], Awaitable[Lowered | Failed | Died | None]]
"""Lets the tracer that traced an answer lower it for a target; `None` if it has ended."""

_Compiling: TypeAlias = Callable[[Compile], Awaitable[Compiled | Trouble]]

"""The same with a change at an operation; `None` also if it cannot be changed so."""


class TraceGone(Exception):
    """The tracer that traced the answer has ended; the function must be traced again."""


Prepared: TypeAlias = tuple[str, Compile, CompilerEnvironment]
"""A digest of everything that determines the result, what is asked for, and who is asked."""


def _scheduled(name: str) -> str:
    """Return the name of a program's result without memory."""
    return digest(name, "scheduled")


def _entries(name: str, request: Compile) -> tuple[str, ...]:
    """Return the names of the cached results that answer a request, the best first."""
    return (name,) if request.complete else (name, _scheduled(name))


@dataclass(eq=False, slots=True)
class _Running:
    task: asyncio.Task[Any]
    waiting: int = 0


@dataclass(eq=False, slots=True)
class CompileCache:
    """The compiled programs of a session."""

    events: asyncio.Queue[Event]
    compilers: Compilers
    disk: DiskCache
    not_sent: NotSent
    memory: SessionMemory
    _running: dict[str, _Running] = field(default_factory=dict)
    _storing: set[asyncio.Future[None]] = field(default_factory=set)

    def cached(
        self, answer: Answer, target: Target, *, complete: bool = False
    ) -> AnyFigures | Refused | None:
        """Return the result for an answer if it is cached."""
        cached = self.memory.results.get((answer.question.key, target.name))
        if cached is None or cached[0] is not answer:
            return None
        result = cached[1]
        if complete and not result.is_complete:
            return None
        if result.target.why_default == target.why_default:
            return result
        chosen = replace(result.target, why_default=target.why_default)
        return replace(result, target=chosen)

    async def get(
        self,
        answer: Answer,
        target: Target,
        python: str,
        lower: Lower,
        *,
        complete: bool,
        urgency: Priority = Priority.PERSON,
    ) -> AnyFigures | Refused:
        """Return the result for an answer; lower and compile it if necessary.

        Args:
            python: the Python interpreter that traced it; it compiles for this machine's own
                devices.
            complete: whether the compile must be complete.
            urgency: decides which of several waiting programs is compiled next.

        Raises:
            Gone: it must be traced again.
        """
        if target.host and (why := self.not_sent(answer.question.path, target.host)):
            return Refused(target, Trouble("approval", why, last=False))
        if (cached := self.cached(answer, target, complete=complete)) is not None:
            return cached
        target = own_target(target, os.environ)
        lowered = await self._lower(answer, target, lower)
        prepared = await self.prepared(lowered, target, python)
        result: AnyFigures | Refused
        if isinstance(prepared, Trouble):
            known = lowered if isinstance(lowered, Lowered) else None
            result = Refused(target, prepared, known)
        else:
            assert isinstance(lowered, Lowered)
            result = await self._result(
                answer, lowered, target, prepared, complete=complete, urgency=urgency
            )
        if isinstance(result, Refused) and not result.trouble.last:
            return result
        if result.is_complete or self.cached(answer, target, complete=True) is None:
            self.memory.results.put((answer.question.key, target.name), (answer, result))
        return result

    async def folding(
        self, answer: Answer, target: Target, python: str, lower: Lower
    ) -> Folding | None:
        """Return the compile times of an answer's program with and without constant folding.

        Returns `None` if they cannot be measured.

        Raises:
            Gone: it must be traced again.
        """
        if target.host and self.not_sent(answer.question.path, target.host):
            return None
        target = own_target(target, os.environ)
        prepared = await self.prepared(await self._lower(answer, target, lower), target, python)
        if isinstance(prepared, Trouble):
            return None
        name = digest(prepared[0], "folding")
        if (measured := self.memory.foldings.get(name)) is None:
            measure = functools.partial(self._measure, name, prepared, answer, target)
            measured = await self._shared(name, measure)
            self.memory.foldings.put(name, measured)
        if isinstance(measured, Trouble):
            return None
        if not measured.is_ended:
            cached = self.memory.results.get((answer.question.key, target.name))
            if cached is not None and isinstance(cached[1], Figures) and cached[1].is_unfolded:
                self.memory.results.pop((answer.question.key, target.name))
        return measured

    async def aclose(self) -> None:
        """Cancel all work and end the compilers."""
        await end(running.task for running in self._running.values())
        await asyncio.gather(*self._storing, return_exceptions=True)
        await self.compilers.aclose()

    async def _lower(self, answer: Answer, target: Target, lower: Lower) -> Lowered | Trouble:
        key = answer.question.key, target.platform, target.capability
        if (cached := self.memory.lowered.get(key)) is not None and cached[0] is answer:
            return cached[1]
        name = " ".join(("lower", str(id(answer)), *key))
        return await self._shared(name, lambda: self._lower_once(answer, target, lower))

    async def _lower_once(self, answer: Answer, target: Target, lower: Lower) -> Lowered | Trouble:
        reply = await lower(answer, target)
        lowered: Lowered | Trouble
        match reply:
            case None:
                raise TraceGone
            case Lowered():
                lowered = reply
            case Failed(failure=failure) if failure.type.startswith("jaxsight."):
                lowered = Trouble("lower", failure.message)  # the tracer's own objection
            case Failed(failure=failure):
                name = failure.type.rpartition(".")[2]
                said = f"{name}: {words(failure.message)}" if failure.message.strip() else name
                lowered = Trouble("lower", f"lowering for {target.name} failed: {said}")
            case Died() as died:
                return Trouble("lower", died.message, last=not died.external)
        key = answer.question.key, target.platform, target.capability
        self.memory.lowered.put(key, (answer, lowered))
        return lowered

    async def prepared(
        self, lowered: Lowered | Trouble, target: Target, python: str
    ) -> Prepared | Trouble:
        """Return what is asked for a program, or why it cannot be compiled for the target."""
        if isinstance(lowered, Trouble):
            return lowered
        request = replace(lowered.request, target=target.name)
        needed = request.distribution.devices if request.distribution is not None else 1
        if target.devices and needed > target.devices:
            why = f"it spans {needed} devices, but {target.name} has {target.devices}"
            return Trouble("target", why)
        if target.is_own:
            environment = environment_of(target, python, lowered.jaxlib)
        else:  # looks for installed compilers
            environment = await asyncio.to_thread(environment_of, target, python, lowered.jaxlib)
        if isinstance(environment, Trouble):
            return environment
        compiler = environment
        if target.host:
            has = await self.compilers.jaxlib(target, environment)
            if isinstance(has, Trouble):
                return has
            compiler = replace(environment, jax=has)
        return digest(lowered.key, *identity(compiler, target)), request, environment

    async def _result(
        self,
        answer: Answer,
        lowered: Lowered,
        target: Target,
        prepared: Prepared,
        *,
        complete: bool,
        urgency: Priority,
    ) -> AnyFigures | Refused:
        """Return the result of compiling a program.

        If constant folding would take minutes and the result is not cached, the program is compiled
        without constant folding.
        """
        name, request, environment = prepared
        request = replace(request, complete=complete or not ends_early(target, environment))

        async def compile(request: Compile) -> Compiled | Trouble:
            title = f"{answer.question.subject.name} for {target.short}"
            async with self._progress(name, title):
                return await self.compilers.compile(target, environment, request, urgency)

        traps = [fold for fold in lowered.folds if fold.trap]
        is_unfolded = bool(traps) and await self._known(name, request) is None
        if is_unfolded:
            name, request = digest(name, "unfolded"), folding.without(request)
        if (outcome := await self._known(name, request)) is None:
            work = functools.partial(self._work, name, request, compile)
            outcome = await self._shared(_entries(name, request)[-1], work)
        if isinstance(outcome, Trouble):
            return Refused(target, outcome, lowered)
        if is_unfolded:
            worst = max(traps, key=lambda fold: fold.seconds)
            note = folding.note(worst.primitive, worst.elements, worst.seconds)
            outcome = replace(outcome, notes=(*outcome.notes, note))
        return Figures.of(target, outcome, lowered, is_unfolded=is_unfolded)

    async def _known(self, name: str, request: Compile) -> Compiled | Trouble | None:
        """Return the cached result of a program; a complete one if there is one."""
        entries = _entries(name, request)
        for entry in entries:
            if (cached := self.memory.compiled.get(entry)) is not None:
                return cached
        if entries[-1] in self._running:
            return None
        if (stored := await asyncio.to_thread(self.disk.first, entries)) is not None:
            self.memory.compiled.put(*stored)
            return stored[1]
        return None

    async def _shared(self, name: str, work: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result of work that all callers with the same name share.

        It is cancelled when no caller waits for it any more.
        """
        if (running := self._running.get(name)) is None:
            running = self._running[name] = _Running(asyncio.create_task(work()))
            running.task.add_done_callback(lambda done: forget(self._running, name, done))
        running.waiting += 1
        try:
            result: T = await asyncio.shield(running.task)
            return result
        except asyncio.CancelledError:
            if running.waiting == 1 and not running.task.done():
                running.task.cancel()
                del self._running[name]
            raise
        finally:
            running.waiting -= 1

    async def _work(self, name: str, request: Compile, compile: _Compiling) -> Compiled | Trouble:
        if request.complete:
            return await self._complete_once(name, functools.partial(compile, request))
        outcome = await compile(request)
        if isinstance(outcome, Trouble):
            return self._keep(name, outcome)
        entry = name if outcome.is_complete else _scheduled(name)
        self._store(entry, outcome)
        return self._keep(entry, outcome)

    async def _complete_once(
        self, name: str, compile: Callable[[], Awaitable[Compiled | Trouble]]
    ) -> Compiled | Trouble:
        """Return the result of a complete compile, unless another process makes it meanwhile."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        waited = False
        while (lock := await asyncio.to_thread(self.disk.lock, name)) is None:
            waited = True
            if loop.time() > begin + _PATIENCE:
                break
            await asyncio.sleep(_LOOK_AGAIN)
        with lock or contextlib.ExitStack() as locked:
            stored = await asyncio.to_thread(self.disk.get, name) if waited else None
            outcome = stored if stored is not None else await compile()
            if isinstance(outcome, Compiled):
                self.memory.compiled.pop(_scheduled(name))
                if stored is None:
                    self._store(name, outcome, locked.pop_all())
        return self._keep(name, outcome)

    def _keep(self, name: str, outcome: Compiled | Trouble) -> Compiled | Trouble:
        """Remember a result, unless another attempt may have another one."""
        if isinstance(outcome, Compiled) or outcome.last:
            self.memory.compiled.put(name, outcome)
        return outcome

    def _store(
        self, entry: str, outcome: Compiled, locked: contextlib.ExitStack | None = None
    ) -> None:
        """Write a result to disk while its callers go on, then unlock its entry."""
        storing = asyncio.ensure_future(asyncio.to_thread(self.disk.put, entry, outcome))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        if locked is not None:
            storing.add_done_callback(lambda _: locked.close())

    async def _measure(
        self, name: str, prepared: Prepared, answer: Answer, target: Target
    ) -> Folding | Trouble:
        recorded = await asyncio.to_thread(self.disk.record, name, Folding)
        if recorded is not None:
            return recorded
        program, request, environment = prepared
        title = f"constant folding in {answer.question.subject.name} for {target.short}"
        async with self._progress(name, title):
            measured = await self.compilers.folding(target, environment, request)
        if isinstance(measured, Trouble):
            log.info("constant folding is not measured: %s", measured.message)
            return measured
        recorded, compiled = measured
        await asyncio.to_thread(self.disk.put, name, recorded)
        if compiled is not None:
            self.memory.compiled.put(program, compiled)
            await asyncio.to_thread(self.disk.put, program, compiled)
        return recorded

    def _progress(self, name: str, title: str) -> AbstractAsyncContextManager[None]:
        """Show the elapsed time of a compile while the body runs."""

        def detail(seconds: float) -> str:
            return f"{title}… {seconds:.0f} s"

        return progress(self.events, f"compile {name}", "Compiling", detail, LONG)
