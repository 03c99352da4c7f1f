"""The tracers of one project root and Python environment, and the queue of their requests.

Requests run one at a time, the most urgent first; others run past a step that takes long, in the
spare.
Each is answered exactly once: by the tracer, by `Cancelled`, or by `Died`.
When a tracer dies, the spare takes over at once and gets the next request; a death costs a process,
never the server.
If a tracer reports that effects of a file cannot be undone, it is replaced too, and the request is
repeated.
A request has the editor's texts of its own, which the tracer gets before it: so no other request,
edit or restart can change which texts an answer is made of.
The supervisor must never block, and never repeat a request that killed its process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast, get_args

from jaxsight.files import reading
from jaxsight.files.texts import Texts
from jaxsight.wire.frames import WireError
from jaxsight.wire.messages.replies import Cancelled, Failed, Reply, Spoiled, Stage, Traced
from jaxsight.wire.messages.requests import Cancel, Request
from jaxsight.workers.crash_backoff import CrashBackoff
from jaxsight.workers.limits import Limits
from jaxsight.workers.output import Locate, nowhere
from jaxsight.workers.own_python import neutral_folder, tracer_command, tracer_environment
from jaxsight.workers.pool import Pool, PooledTracer
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.request_queue import (
    SLOW,
    CurrentStep,
    Haste,
    Priority,
    QueuedRequest,
    SlowStatements,
    can_pass,
    take_first,
)
from jaxsight.workers.results import (
    Death,
    Died,
    Event,
    Outcome,
    Reason,
    Replaced,
    State,
    TracerOutput,
    TracerStatus,
    is_internal,
    unavailable,
)

__all__ = ["Death", "Died", "Outcome", "Priority", "Reason", "Tracers"]

log = logging.getLogger(__name__)

R = TypeVar("R")
Answer = Reply | Failed | Cancelled | Spoiled
_ANSWERS = (*get_args(Reply), Failed, Cancelled, Spoiled)
SHUT_DOWN = "the tracers are shut down"
_SPOILED = 3  # processes that a request may spoil, a choice: each tells of one slow statement


class Tracers:
    """The tracers of one project and Python environment.

    Use them within one event loop; `start` spawns them, `aclose` ends all processes.
    """

    def __init__(
        self,
        python: str,
        root: str,
        *,
        limits: Limits | None = None,
        spare: bool = True,
        variables: Mapping[str, str] | None = None,
        locate: Locate = nowhere,
        command: Sequence[str] | None = None,
        files: Texts | None = None,
        confined: bool = True,
    ) -> None:
        """Start no process yet.

        Args:
            python: the user's Python executable.
            root: the project's folder, in which tracers run.
            spare: whether to keep a second tracer warm, which takes its memory.
            variables: the user's settings of variables, e.g. `JAX_PLATFORMS`, which win.
            locate: returns the current line of a chunk, for places in output.
            files: the texts of all files, by default those on disk.
            command: the command to run instead of jaxsight's tracer; it must use the same protocol.
            confined: whether what runs may change nothing outside, as nobody asked to run it.
        """
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        """Events for the owner, who has to read them."""
        self._limits, self._locate, self._confined = limits or Limits(), locate, confined
        self._command = list(command or tracer_command(python))
        self._folder = root if reading.is_folder(root) else neutral_folder()
        self._environment = tracer_environment(python, os.environ, variables)
        self._pool = Pool(
            python,
            self._spawn,
            spare=spare,
            on_status=self._report_status,
            on_death=self._report_replaced,
        )
        self._crash_backoff = CrashBackoff(files if files is not None else Texts())
        self._waiting: list[QueuedRequest] = []
        """In the order of their arrival."""
        self._slow = SlowStatements()
        self._ids = itertools.count(1)
        self._arrived = asyncio.Event()
        self._running: QueuedRequest | None = None
        self._passing: QueuedRequest | None = None
        """The request that runs past the running one, in the spare."""
        self._past: asyncio.Task[None] | None = None
        self._status = TracerStatus(State.STARTING)
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def status(self) -> TracerStatus:
        """The last reported status."""
        return self._status

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the active tracer and of the spare that have started."""
        return tuple(tracer.process.pid for tracer in self._pool.all if tracer.process.pid)

    def step(self, haste: Haste) -> CurrentStep | None:
        """Return what a tracer does with a request, or what the request waits for, if anything."""
        running = self._passing if self._passing and self._passing.haste is haste else self._running
        return running.step if running is not None and running.stage else None

    @property
    def spare_ready(self) -> bool:
        """Whether a spare is ready."""
        return self._pool.spare is not None

    def start(self) -> None:
        """Spawn the first tracer; requests would do so too, but later."""
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="tracers")
            self._pool.ensure_active()

    async def ask(
        self,
        request: Request[R],
        *,
        priority: Priority | Haste = Priority.PERSON,
        on_stage: Callable[[Stage], None] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> Outcome[R]:
        """Queue a request and return its answer; cancelling the caller cancels the request.

        Args:
            request: its `id` is assigned here.
            priority: a `Haste` if it may rise while the request waits.
            texts: the texts of open files by path, for a request that executes code; it must not
                change any more.
            on_stage: called with each stage that the tracer reports.
        """
        message = request.numbered(next(self._ids))
        if self._closed:
            return unavailable(message, SHUT_DOWN)
        self.start()
        haste = Haste(priority) if isinstance(priority, Priority) else priority
        haste.on_rise = self._run_past_slow_step
        entry = QueuedRequest(message, haste, on_stage, texts)
        self._waiting.append(entry)
        self._arrived.set()
        self._limit_cancelled()
        self._run_past_slow_step()
        try:
            return cast("Outcome[R]", await entry.answer)
        except asyncio.CancelledError:
            self._cancel(entry)
            raise

    def _cancel(self, entry: QueuedRequest) -> None:
        """Drop a request that waits, or stop it if it runs; it may have been answered already."""
        if entry in self._waiting:
            self._waiting.remove(entry)
            return
        if entry in (self._running, self._passing) and entry.cancelled_at is None:
            entry.cancelled_at = asyncio.get_running_loop().time()
            if entry.tracer is not None:
                entry.tracer.process.send(Cancel(entry.message.id))
            self._limit_cancelled()

    def keep_spare(self, wanted: bool) -> None:
        """Keep a second tracer warm from now on, or stop keeping one."""
        self._pool.keep_spare(wanted)

    async def sleep(self) -> bool:
        """End all processes until the next request, and return whether that was possible.

        While a request runs or waits, nothing ends.
        """
        if self._running is not None or self._passing is not None or self._waiting:
            return False
        await self._pool.sleep()
        return True

    def retry(self) -> None:
        """Try again what ended tracers: data has changed on disk, and who reads it is not known."""
        self._crash_backoff.clear()

    async def restart(self) -> None:
        """End all tracers, forget past deaths and start a new one.

        The running request is answered by `Died`; waiting ones continue.
        """
        self._crash_backoff.clear()
        self._slow.clear()
        await self._pool.restart()

    async def aclose(self) -> None:
        """End all processes and wait for them; open requests are answered by `Died`."""
        self._closed = True
        for task in (self._worker, self._past):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        while (entry := take_first(self._waiting)) is not None:
            entry.settle(unavailable(entry.message, SHUT_DOWN))
        await self._pool.aclose()

    async def _work(self) -> None:
        """Answer requests in order, forever."""
        while True:
            while (entry := take_first(self._waiting)) is not None:
                self._running = entry
                self._pool.is_paused = False
                outcome: Outcome[object] = unavailable(entry.message, SHUT_DOWN)
                try:
                    outcome = await self._answer(entry)
                finally:
                    self._running = None
                    entry.settle(outcome)
            self._pool.is_paused = True
            if self._status.state is State.BUSY:
                self._report_status(TracerStatus(State.READY, "", self._status.hello))
            self._pool.use_pause()
            self._arrived.clear()
            await self._arrived.wait()

    async def _answer(self, entry: QueuedRequest) -> Outcome[object]:
        message = entry.message
        spoiled = 0
        if (expected := self._crash_backoff.repeated_death(message)) is not None:
            return expected
        while True:
            tracer = await self._pool.ready()
            if tracer is None:
                return unavailable(message, self._pool.problem)
            if entry.cancelled_at is not None:
                return Cancelled(message.id)
            retried = entry.tracer is not None
            entry.tracer = tracer
            outcome = await self._run(entry, tracer)
            if isinstance(outcome, Spoiled):
                tracer.process.kill(death := Death(Reason.SPOILED, last_words=outcome.reason))
                if (spoiled := spoiled + 1) > _SPOILED:
                    return Died(message.id, entry.stage, death)
                entry.begin_again()
                again = f"{message.title} in a new process: {outcome.reason}"
                self._report_status(TracerStatus(State.BUSY, again, tracer.hello))
                continue
            # If the tracer was dying before the request started, repeat the request once.
            if isinstance(outcome, Died) and not entry.stage and not retried:
                continue
            slice = message.executes
            if slice is not None and is_internal(outcome):
                failed_before = retried or slice.file in self._crash_backoff.failing
                if tracer.answered > 1 and not failed_before:
                    # An earlier request may have corrupted the tracer: a fresh one shows whether
                    # this request fails by itself.
                    tracer.process.kill(Death(Reason.STOPPED))
                    continue
                self._crash_backoff.failing.add(slice.file)
            self._crash_backoff.add_outcome(message, outcome)
            return outcome

    async def _run(self, entry: QueuedRequest, tracer: PooledTracer) -> Outcome[object] | Spoiled:
        """Run a request in a tracer, within the time of each stage."""
        process, message = tracer.process, entry.message
        process.file = message.executes.file if message.executes is not None else ""
        try:
            if entry.texts is not None:
                tracer.send_overlays(entry.texts)
            process.send(self._slow.told(message))
        except WireError as error:
            return unavailable(message, f"cannot send the request to the tracer: {error}")
        # After the request: the guardian wakes up and checks processes, which would delay it.
        process.busy()
        self._report_step(entry, tracer)
        limit = self._limits.of_stage("execute" if message.executes is not None else "")
        watch = asyncio.get_running_loop().create_task(self._watch(entry, tracer))
        try:
            async with asyncio.timeout(limit) as entry.timer:
                while (received := await process.receive()) is not None:
                    match received:
                        case Stage(file=file, version=version) if file:
                            tracer.imported[file] = version
                        case Stage(id=message.id) as reached:
                            tracer.has_run_request = True
                            if reached.stage != entry.stage:
                                limit = self._limits.of_stage(reached.stage)
                                end = asyncio.get_running_loop().time() + limit
                                entry.timer.reschedule(end)
                                self._limit_cancelled()
                            self._slow.note(entry)
                            entry.reach(reached)
                            if entry.on_stage is not None and not entry.answer.done():
                                entry.on_stage(reached)
                        case answer if isinstance(answer, _ANSWERS):
                            if answer.id == message.id:
                                if isinstance(answer, Traced):
                                    entry.settle(answer)  # the caller need not wait for the rest
                                return await self._answered(tracer, answer)
                        case unexpected:
                            kind = type(unexpected).__name__
                            log.warning("unexpected message from a tracer: %s", kind)
        except TimeoutError:
            if entry.cancelled_at is not None:
                process.kill(Death(Reason.STOPPED))
                return Cancelled(message.id)
            process.kill(Death(Reason.TIMEOUT, limit=limit))
        finally:
            watch.cancel()
            entry.timer = None
        return entry.died(await asyncio.shield(process.death), tracer.imported)

    async def _answered(self, tracer: PooledTracer, answer: Answer) -> Answer:
        # Its output is in the pipe by now: let the loop read it while `process.file` is set.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if text := tracer.process.output.finish():
            self._report_output(tracer.process, text)
        tracer.process.file = ""
        tracer.has_run_request = True
        tracer.process.idle()
        tracer.count_answer()
        return answer

    async def _watch(self, entry: QueuedRequest, tracer: PooledTracer) -> None:
        """Report a step that takes long, and let other requests run past it."""
        while True:
            await asyncio.sleep(SLOW)
            self._slow.note(entry)
            self._report_step(entry, tracer)
            self._run_past_slow_step()

    def _run_past_slow_step(self) -> None:
        """Let requests not wait for a program, or for a step that the spare does not need."""
        slow = self._running
        if slow is None or self._past is not None or slow.step.seconds < SLOW:
            return
        spare = self._pool.spare
        if spare is None:
            self._pool.hurry_spare()
            return
        may_pass = partial(can_pass, slow=slow, tracer=spare)
        if (entry := take_first(self._waiting, may_pass)) is not None:
            spare.is_lent, self._passing = True, entry
            self._past = asyncio.get_running_loop().create_task(
                self._answer_past(entry, spare), name="tracers past a slow step"
            )

    async def _answer_past(self, entry: QueuedRequest, spare: PooledTracer) -> None:
        """Answer a request in the spare, then let others run past the slow step."""
        try:
            await self._answer_in(entry, spare)
        except BaseException:
            entry.settle(unavailable(entry.message, SHUT_DOWN))
            raise
        finally:
            self._passing = self._past = None
            spare.is_lent = False
        self._run_past_slow_step()

    async def _answer_in(self, entry: QueuedRequest, tracer: PooledTracer) -> None:
        """Answer a request in the spare.

        A request that fails there for a reason of jaxsight's own waits for the active tracer again.
        """
        message = entry.message
        if (expected := self._crash_backoff.repeated_death(message)) is not None:
            entry.settle(expected)
            return
        entry.tracer = tracer
        outcome = await self._run(entry, tracer)
        if isinstance(outcome, Spoiled):
            tracer.process.kill(Death(Reason.SPOILED, last_words=outcome.reason))
        if isinstance(outcome, Spoiled) or is_internal(outcome):
            entry.begin_again()
            entry.tracer = None
            self._waiting.append(entry)
            return
        if isinstance(outcome, Traced):
            tracer.traced.add(outcome.id)
        self._crash_backoff.add_outcome(message, outcome)
        entry.settle(outcome)
        if isinstance(outcome, Died):
            self._report_replaced(tracer, outcome.death)

    def _limit_cancelled(self) -> None:
        """Limit cancelled requests to their grace period while others wait."""
        for entry in (self._running, self._passing) if self._waiting else ():
            if entry is not None and entry.timer is not None and entry.cancelled_at is not None:
                end = entry.cancelled_at + self._limits.cancel
                entry.timer.reschedule(min(end, entry.timer.when() or end))

    def _spawn(self) -> TracerProcess:
        return TracerProcess(
            self._command,
            environment=self._environment,
            folder=self._folder,
            limits=self._limits,
            locate=self._locate,
            on_output=self._report_output,
            confined_for=self._folder if self._confined else "",
        )

    def _report_replaced(self, tracer: PooledTracer, death: Death) -> None:
        self.events.put_nowait(Replaced(death, tracer.process.file))

    def _report_output(self, process: TracerProcess, text: str) -> None:
        answering = (t.process for t in self._pool.all if t is self._pool.active or t.is_lent)
        if process in answering:
            self.events.put_nowait(TracerOutput(process.file, text))

    def _report_step(self, entry: QueuedRequest, tracer: PooledTracer) -> None:
        """Report what the active tracer does, and for how long if that is long."""
        if tracer is self._pool.active:
            self._report_status(TracerStatus(State.BUSY, entry.words, tracer.hello))

    def _report_status(self, status: TracerStatus) -> None:
        if status != self._status or status.state is State.STARTING:
            self._status = status
            self.events.put_nowait(status)
