"""The compiler processes of targets, started on the first request, ended after long idleness.

Where a compile can end before code generation, a target has two: one answers at typing speed, the
other compiles completely in the background.

XLA cannot be interrupted. A cancelled compile ends where XLA asks, or with its process, which is
killed when a new one is probably ready sooner.
A compile that exceeds its deadline is killed; one that crashed its process is retried once.
The caller always gets an answer: a `Compiled`, or a `Trouble` with a message for the user.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from jaxsight.compiler import folding as constant_folding
from jaxsight.targets.own import busy
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.wire.frames import WireError
from jaxsight.wire.messages.compiling import (
    COMPILER_VERSION,
    Compile,
    Compiled,
    Folding,
    NotCompiled,
    Refusal,
)
from jaxsight.wire.messages.replies import Hello
from jaxsight.wire.messages.requests import Cancel
from jaxsight.workers.compilation import remote
from jaxsight.workers.compilation.environments import (
    CompilerEnvironment,
    compiler_python,
    compiler_variables,
    ends_early,
    variables,
)
from jaxsight.workers.limits import Limits
from jaxsight.workers.output import nowhere
from jaxsight.workers.own_python import ROOT, tracer_environment
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.request_queue import Priority, Queue
from jaxsight.workers.results import Death, Reason, signal_name

log = logging.getLogger(__name__)

T = TypeVar("T")


GRACE = 2.0
"""Seconds that a cancelled compile may take in all if the start of a process was not measured, a
choice: importing JAX takes 0.4 s, on a loaded machine 2.1 s (`docs/performance.md`)."""
_LEAST_GRACE = 0.1
"""Seconds that every cancelled compile may still take, a choice: its result is cached, and most
small compiles need less."""

FOLDING = 15.0
"""Seconds of a compile that measures constant folding, a choice: folding for longer is a finding in
any case, and the measurement occupies a core."""
_SHORT, _CERTAIN = 1.0, 4.0
"""If a compile takes between these seconds, a second one is measured too, as another process may
have delayed the first. XLA itself warns of folding from 1 s on (`SlowOperationAlarm` in
`hlo_constant_folding.cc`); 4 times that is no delay."""

_IN_BACKGROUND = "in the background"
"""The purpose of a compiler that nobody waits for: kernels are known already."""
_RUNNING = "running"
"""The same that runs a program, as the user has asked for."""

IDLE = 600.0
"""Seconds of idleness after which a compiler is ended, a choice: it uses some 190 MiB
(`docs/performance.md`), and the next compile waits for a new one."""
IDLE_IN_BACKGROUND = 60.0
"""The same for a compiler that nobody waits for: starting it again is not felt."""
IDLE_ON_DEVICE = {"cuda": 60.0, "rocm": 60.0, "tpu": 5.0}
"""The same for a compiler that holds this machine's accelerator: a CUDA context takes some 500 MiB
of device memory, and a TPU belongs to one process.
"""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a program was not compiled."""

    kind: Refusal | Literal["death", "time", "missing", "approval", "lower"]
    message: str
    last: bool = True
    """Whether another attempt would fail in the same way."""
    seconds: float = 0.0
    """After which the compile was stopped, if the kind is `time`."""


@dataclass(eq=False, slots=True)
class _Worker:
    target: Target
    command: Sequence[str]
    environment: CompilerEnvironment
    rest: float
    """Seconds of idleness after which its process is ended."""
    queue: Queue = field(default_factory=Queue)
    process: TracerProcess | None = None
    idle: asyncio.TimerHandle | None = None
    start: float = GRACE
    """Seconds that its process took to start."""


@dataclass(eq=False, slots=True)
class _Job:
    """One caller's request, or several in turn."""

    urgency: Priority = Priority.PERSON
    id: int = 0
    """The request that the process works on; 0 while the job waits for its turn."""
    begin: float = 0.0
    """When the process was sent the request, as a time of the event loop."""


class Compilers:
    """The compilers of all targets.

    Use them within one event loop; `aclose` ends all processes.
    """

    def __init__(
        self,
        *,
        memory: int,
        deadline: float,
        command: Callable[[CompilerEnvironment], Sequence[str]] = lambda environment: (
            compiler_python(environment).command
        ),
        remote_python: str = remote.PYTHON,
        folding: float = FOLDING,
    ) -> None:
        """Start no process yet.

        Args:
            memory: limit of a compiler's memory, in bytes.
            deadline: limit of one compile, in seconds.
            command: returns the command of an environment's compiler; it must use the protocol.
            remote_python: the Python executable that compiles on other machines, as a path there.
            folding: limit of a compile that measures constant folding, in seconds.
        """
        self._remote_python = remote_python
        self._command = command
        # A compiler also starts a plugin: with its device, that takes seconds.
        self._limits = Limits(start=90.0, memory=memory)
        self._deadline = deadline
        self._longest = folding
        self._workers: dict[str, _Worker] = {}
        self._ids = itertools.count(1)
        self._closed = False
        self._closing: set[asyncio.Task[None]] = set()
        self.compiled = 0
        """How many requests were sent to a compiler; cached answers do not count."""

    async def compile(
        self,
        target: Target,
        environment: CompilerEnvironment,
        request: Compile,
        urgency: Priority = Priority.PERSON,
    ) -> Compiled | Trouble:
        """Compile a program.

        Cancelling the caller stops the compile, unless it ends soon.

        Args:
            request: without an id.
            urgency: decides which of several waiting requests is next.
        """
        is_behind = request.complete and ends_early(target, environment)
        worker = self._worker(target, environment, _IN_BACKGROUND if is_behind else "")
        job = _Job(urgency)
        running = self._run(worker, job, request, self._deadline)
        return await self._unless_cancelled(worker, job, running)

    async def folding(
        self, target: Target, environment: CompilerEnvironment, request: Compile
    ) -> tuple[Folding, Compiled | None] | Trouble:
        """Measure how long a program compiles without and with constant folding.

        This uses a process of its own.

        Returns:
            The times, and the program compiled with folding, unless that exceeded its deadline.
        """
        worker = self._worker(target, environment, "folding")
        job = _Job()
        with self._ending(worker):
            return await self._unless_cancelled(
                worker, job, self._measure_folding(worker, job, request)
            )

    @contextlib.contextmanager
    def _ending(self, worker: _Worker) -> Iterator[None]:
        """End a worker's process after the body."""
        try:
            yield
        finally:
            if worker.idle is not None:
                worker.idle.cancel()
            self._end_idle(worker)

    async def run(
        self, target: Target, environment: CompilerEnvironment, request: Compile, deadline: float
    ) -> Compiled | Trouble:
        """Compile a program and run it on the target's device, as `request.runs` says.

        Its process is nobody else's, and ends after it. Cancelling the caller ends it at once.

        Args:
            deadline: the limit of all together, in seconds.
        """
        worker, job = self._worker(target, environment, _RUNNING), _Job()
        with self._ending(worker):
            try:
                return await self._run(worker, job, request, deadline)
            except asyncio.CancelledError:
                if worker.process is not None:
                    worker.process.kill(Death(Reason.STOPPED))
                raise

    async def _measure_folding(
        self, worker: _Worker, job: _Job, request: Compile
    ) -> tuple[Folding, Compiled | None] | Trouble:
        unfolded = folded = math.inf
        compiled: Compiled | None = None
        for _ in range(2):  # the first compile of a process takes longer
            answer = await self._run(worker, job, constant_folding.without(request), self._deadline)
            if isinstance(answer, Trouble):
                return answer
            unfolded = min(unfolded, answer.seconds)
        while compiled is None or _SHORT <= folded <= _CERTAIN:
            answer = await self._run(worker, job, request, self._longest)
            if isinstance(answer, Trouble):
                is_ended = answer.kind == "time"
                return (
                    (Folding(self._longest, unfolded, is_ended=True), None) if is_ended else answer
                )
            folded = min(folded, answer.seconds)
            if compiled is not None:
                break
            compiled = answer
        return Folding(folded, unfolded), compiled

    async def _unless_cancelled(
        self, worker: _Worker, job: _Job, work: Coroutine[None, None, T]
    ) -> T:
        """Return the result of a worker's work.

        If the caller is cancelled, the work is stopped, unless it ends soon.
        """
        task = asyncio.get_running_loop().create_task(work)
        try:
            # Shielded: what ends soon goes on, see `_give_up`.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start_closing(self._give_up(worker, job, task))
            raise

    async def jaxlib(self, target: Target, environment: CompilerEnvironment) -> str | Trouble:
        """Return the version of jaxlib of a target's compiler, and start the compiler if needed.

        On another machine, the version is not known before.
        """
        worker = self._worker(target, environment)
        async with worker.queue.turn(Priority.PERSON):
            process = self._process(worker)
            # Shielded: cancelling a caller must not cancel what others await.
            hello = await asyncio.shield(process.ready)
            if hello is None:
                death = await asyncio.shield(process.death)
                return Trouble("death", _message(worker.target, death), last=False)
            if hello.problem:
                return Trouble("target", hello.problem)
            return hello.jaxlib

    async def aclose(self) -> None:
        """End all processes and wait for them; none is started afterwards."""
        self._closed = True
        for worker in self._workers.values():
            if worker.idle is not None:
                worker.idle.cancel()
        processes = [w.process for w in self._workers.values() if w.process is not None]
        self._workers.clear()
        await asyncio.gather(*(process.aclose() for process in processes))
        while self._closing:
            await asyncio.wait(self._closing)

    def _worker(
        self, target: Target, environment: CompilerEnvironment, purpose: str = ""
    ) -> _Worker:
        name = f"{target.name} {purpose}".rstrip()
        worker = self._workers.get(name)
        if worker is None or worker.environment != environment:
            if worker is not None and worker.process is not None:
                self._start_closing(worker.process.aclose())
            is_behind = purpose == _IN_BACKGROUND
            command = [*self._command_of(target, environment), *(["--nice"] if is_behind else [])]
            rest = IDLE_IN_BACKGROUND if is_behind else IDLE
            if target.is_own:
                rest = min(rest, IDLE_ON_DEVICE.get(target.platform, rest))
            worker = self._workers[name] = _Worker(target, command, environment, rest)
        return worker

    def _command_of(self, target: Target, environment: CompilerEnvironment) -> Sequence[str]:
        if not target.host:
            return self._command(environment)
        platform = f"here-{target.platform}" if target.platform != CPU else CPU
        environment_variables = variables(platform if target.is_own else target.platform)
        return remote.command(target.host, environment_variables, self._remote_python)

    async def _give_up(self, worker: _Worker, job: _Job, task: asyncio.Task[T]) -> None:
        """End work that has no caller any more.

        A compile that took longer than the start of a process will probably take that long again,
        so it is better to replace its process.
        """
        if job.id == 0:
            task.cancel()
        elif (process := worker.process) is not None:
            process.send(Cancel(job.id))
            spent = asyncio.get_running_loop().time() - job.begin
            grace = max(worker.start - spent, _LEAST_GRACE)
            done, _ = await asyncio.wait([task], timeout=grace)
            if done:
                return
            task.cancel()
            process.kill(Death(Reason.STOPPED))
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _run(
        self, worker: _Worker, job: _Job, request: Compile, deadline: float
    ) -> Compiled | Trouble:
        async with worker.queue.turn(job.urgency):
            if worker.idle is not None:
                worker.idle.cancel()
            loop = asyncio.get_running_loop()
            for may_retry in (True, False):
                if self._closed:
                    return Trouble("death", _message(worker.target, Death(Reason.STOPPED)))
                answer = await self._ask(worker, job, request, deadline)
                if isinstance(answer, Death):
                    crashed = answer.reason in (Reason.CRASHED, Reason.EXITED, Reason.PROTOCOL)
                    if may_retry and crashed and not _is_unreachable(worker.target, answer):
                        log.warning(
                            "the compiler for %s died (%s); retrying", worker.target.name, answer
                        )
                        continue
                    return Trouble(
                        "time" if answer.reason is Reason.TIMEOUT else "death",
                        _message(worker.target, answer),
                        seconds=answer.limit,
                    )
                worker.idle = loop.call_later(worker.rest, self._end_idle, worker)
                if isinstance(answer, Compiled):
                    return answer
                if answer.kind != "busy":
                    return Trouble(answer.kind, answer.message)
                self._end(worker)  # it may hold a part of the device
                return Trouble("busy", busy.explained(answer.message, worker.target), last=False)
            raise AssertionError("the second try answers")

    async def _ask(
        self, worker: _Worker, job: _Job, request: Compile, deadline: float
    ) -> Compiled | NotCompiled | Death:
        process = self._process(worker)
        ready = await asyncio.shield(process.ready)
        if ready is None:
            return await asyncio.shield(process.death)
        numbered = replace(request, id=next(self._ids))
        try:
            process.send(numbered)
        # For example, a program that is too large for a frame.
        except WireError as error:
            return NotCompiled(
                numbered.id, "program", f"cannot send the program to the compiler: {error}"
            )
        job.id, job.begin = numbered.id, asyncio.get_running_loop().time()
        process.busy()
        self.compiled += 1
        try:
            async with asyncio.timeout(deadline):
                while (received := await process.receive()) is not None:
                    if isinstance(received, Compiled | NotCompiled) and received.id == numbered.id:
                        process.idle()
                        return received
        except TimeoutError:
            process.kill(Death(Reason.TIMEOUT, limit=deadline))
        finally:
            job.id = 0
        return await asyncio.shield(process.death)

    def _process(self, worker: _Worker) -> TracerProcess:
        if worker.process is not None and worker.process.alive:
            return worker.process
        log.info("starting a compiler for %s", worker.target.name)
        environment, first, confined_for = dict(os.environ), b"", ""
        if worker.target.host:
            first = remote.modules()
        else:
            own, added = compiler_python(worker.environment), compiler_variables(worker.environment)
            environment = tracer_environment(worker.environment.python, own.environment, added)
            confined_for = worker.environment.python  # which a workspace may have made
        loop = asyncio.get_running_loop()
        begin = loop.time()
        process = worker.process = TracerProcess(
            worker.command,
            environment=environment,
            first=first,
            confined_for=confined_for,
            folder=ROOT,
            limits=self._limits,
            locate=nowhere,
            on_output=lambda process, text: log.debug(
                "compiler %d: %s", process.pid, text.rstrip()
            ),
            version=COMPILER_VERSION,
        )

        def note_start(ready: asyncio.Future[Hello | None]) -> None:
            worker.start = loop.time() - begin

        process.ready.add_done_callback(note_start)
        return process

    def _end_idle(self, worker: _Worker) -> None:
        if not worker.queue.is_busy:
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        if worker.process is not None:
            self._start_closing(worker.process.aclose())
            worker.process = None

    def _start_closing(self, work: Coroutine[None, None, None]) -> None:
        # Kept in the set, as the event loop has only weak references to tasks.
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _is_unreachable(target: Target, death: Death) -> bool:
    return bool(target.host) and death.code == remote.CANNOT_CONNECT


def _message(target: Target, death: Death) -> str:
    task = f"compiling for {target.short}"
    if _is_unreachable(target, death):
        return f"cannot reach {target.host} over ssh ({death.last_words or 'no error output'})"
    match death.reason:
        case Reason.TIMEOUT:
            return f"it does not compile in {death.limit:g} s (setting `timeouts.compile`)"
        case Reason.MEMORY:
            return (
                f"{task} used {units.size(death.used)} of memory, "
                f"limit {units.size(death.limit)} (setting `memoryLimit`)"
            )
        case Reason.CRASHED:
            return f"{task} crashed the compiler twice ({signal_name(death.signal)})"
        case Reason.STOPPED:
            return f"{task} was stopped"
        case _:
            last_words = f": {death.last_words}" if death.last_words else ""
            return f"{task} failed: the compiler exited with status {death.code}{last_words}"
