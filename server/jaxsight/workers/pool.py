"""The active tracer and a warm spare: when they start, when the spare takes over, when to give up.

A pool always has an active or starting tracer, unless none can be started.
It must notice every death, and must not start processes too fast in a broken environment.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from jaxsight.boot import TOO_OLD
from jaxsight.files.texts import Version
from jaxsight.text.units import MIB
from jaxsight.wire.messages.replies import Hello
from jaxsight.wire.messages.requests import Overlay
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.results import Death, Reason, State, TracerStatus

log = logging.getLogger(__name__)

YOUNG = 10.0
"""Seconds: a tracer that dies earlier, without a request, has a broken environment. Jupyter's
`KernelRestarter.stable_start_time` is the same."""
TRIES = 5
"""Consecutive deaths of this kind after which no tracer is started until a restart, as Jupyter's
`KernelRestarter.restart_limit`."""
FIRST_PAUSE = 0.5
"""Seconds from the second death of this kind to the next attempt, doubled with each further one: a
choice, with more a passing fault is felt."""
REFUSED_PAUSE = 10.0
"""Seconds until another attempt with an environment that cannot trace, a choice: the user may have
installed JAX, and an attempt starts a Python."""

SPARE_DELAY = 2.0
"""Seconds after which the first spare starts, a choice: its imports would slow down the first
answers, and the compilers that they start. Without one, a crash costs the start of a tracer (`kill
-9` in `docs/performance.md`: 41 ms with a spare)."""

RECYCLE_AFTER = 5000
"""Answers after which the spare replaces an idle tracer, a choice: hours of typing. JAX's caches
and modules of user code grow with each answer; a new tracer imports them again."""
WARM_UP = 10
RECYCLE_GROWTH = 2.0
RECYCLE_SLACK = 256 * MIB
"""The spare also replaces a tracer that exceeds its size after `WARM_UP` answers (imports are done)
times `RECYCLE_GROWTH` plus `RECYCLE_SLACK` bytes, a choice: with less, one large function costs a
restart; with more, leaks of user code fill the memory limit."""


@dataclass(eq=False, slots=True)
class PooledTracer:
    """A process with the pool's records of it."""

    process: TracerProcess
    began: float = field(default_factory=time.monotonic)
    has_run_request: bool = False
    """Whether a request has started in it, so that user code ran."""
    answered: int = 0
    warm_size: int = 0
    overlays: Mapping[str, str] = field(default_factory=dict)
    """The texts of open files that were sent to it, by path."""
    is_lent: bool = False
    """Whether it is a spare that runs a request, and so cannot take over."""
    traced: set[int] = field(default_factory=set)
    """The ids of the traces that it made while it was lent."""
    imported: dict[str, Version] = field(default_factory=dict)
    """The project's files that were imported in it, as they were last."""

    @property
    def hello(self) -> Hello | None:
        return self.process.ready.result() if self.process.ready.done() else None

    @property
    def is_outgrown(self) -> bool:
        bound = self.warm_size * RECYCLE_GROWTH + RECYCLE_SLACK
        return self.answered >= RECYCLE_AFTER or (
            self.warm_size > 0 and bound < self.process.resident
        )

    def count_answer(self) -> None:
        """Count an answer."""
        self.answered += 1
        # On a busy machine, its size becomes known later.
        if self.answered >= WARM_UP and not self.warm_size:
            self.warm_size = self.process.resident

    def send_overlays(self, overlays: Mapping[str, str]) -> None:
        """Send the editor's texts, as far as the tracer has others."""
        # By identity: nobody changes the texts of a request.
        if overlays is self.overlays:
            return
        for path, text in overlays.items():
            if self.overlays.get(path) is not text:
                self.process.send(Overlay(path, text))
        for path in self.overlays.keys() - overlays.keys():
            self.process.send(Overlay(path, None))
        self.overlays = overlays


class Pool:
    """The tracers of one Python environment."""

    def __init__(
        self,
        python: str,
        spawn: Callable[[], TracerProcess],
        *,
        spare: bool,
        on_status: Callable[[TracerStatus], None],
        on_death: Callable[[PooledTracer, Death], None],
    ) -> None:
        """Start no process yet.

        Args:
            python: the Python executable, for messages.
            spawn: starts a process.
            spare: whether to keep a spare.
            on_status: called when a tracer starts, is ready, or cannot be started.
            on_death: called when the active tracer has died and the next one has replaced it.
        """
        self.active: PooledTracer | None = None
        self.problem = ""
        """Why there is no tracer, with a remedy; `""` if there is one."""
        self.is_paused = True
        """Whether no request runs."""
        self._python = python
        self._spawn_process = spawn
        self._spare: PooledTracer | None = None
        self._spare_wanted = spare
        self._on_status = on_status
        self._on_death = on_death
        self._spared_at = math.inf
        """When the last spare started; the first one is no replacement of a lost one."""
        self._young_deaths = 0
        self._retry_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        """Those that wait for the ends of processes, also after this pool is closed."""
        self._closed = False

    @property
    def spare(self) -> PooledTracer | None:
        """The spare, if it is ready to take over."""
        spare = self._spare
        if spare is None or spare.is_lent or spare.hello is None or not spare.process.alive:
            return None
        return spare

    @property
    def all(self) -> list[PooledTracer]:
        """The active tracer and the spare, if they exist."""
        return [tracer for tracer in (self.active, self._spare) if tracer is not None]

    def hurry_spare(self) -> None:
        """Start a spare now if there is none: the active tracer is occupied for long.

        Otherwise a spare starts later, so that it does not delay the first answers.
        """
        if self.active is not None and self.active.hello is not None:
            self._replace_spare()

    def ensure_active(self) -> None:
        """Ensure that a tracer is active or starting, unless the next start has to wait."""
        if self._closed or self.active is not None:
            return
        if self._spare is not None and not self._spare.is_lent:
            self.active, self._spare = self._spare, None
            self._spared_at = 0.0  # it has not died
        elif time.monotonic() >= self._retry_at:
            self._on_status(TracerStatus(State.STARTING, f"Starting {self._python}"))
            self.active = self._spawn()
        else:
            return
        self._start_task(self._report_ready(self.active), self._tasks)

    async def ready(self) -> PooledTracer | None:
        """Return the tracer for a request, after its handshake.

        Returns `None` if there is none now; `problem` has the reason.
        """
        while True:
            self.ensure_active()
            tracer = self.active
            if tracer is None:
                return None
            hello = await asyncio.shield(tracer.process.ready)
            if hello is not None and hello.problem:
                self._reject(tracer, hello)
                return None
            if hello is not None and tracer is self.active and tracer.process.alive:
                return tracer
            self._replace(tracer, await asyncio.shield(tracer.process.death))

    def use_pause(self) -> None:
        """Use an idle moment: replace a lost spare, and an outgrown tracer by the spare."""
        tracer, spare = self.active, self.spare
        if tracer is None or not tracer.process.alive or tracer.hello is None:
            return
        self._replace_spare()
        if spare is not None and tracer.is_outgrown:
            log.info("recycling tracer %d after %d answers", tracer.process.pid, tracer.answered)
            self.active, self._spare = spare, None
            tracer.process.kill(Death(Reason.STOPPED))
            self._start_task(self._report_ready(spare), self._tasks)

    async def restart(self) -> None:
        """End all tracers, forget failures, and start a new one."""
        self._young_deaths, self._retry_at, self.problem = 0, 0.0, ""
        await self.sleep()
        self.ensure_active()

    def keep_spare(self, wanted: bool) -> None:
        """Keep a spare from now on, or stop keeping one."""
        self._spare_wanted = wanted
        active = self.active
        if not wanted and self._spare is not None:
            self._spare.process.kill(Death(Reason.STOPPED))
        elif wanted and self._spare is None and active is not None and active.hello is not None:
            self._add_spare()

    async def sleep(self) -> None:
        """End all tracers until the next request."""
        tracers = self.all
        self.active = self._spare = None
        await asyncio.gather(*(tracer.process.aclose() for tracer in tracers))

    async def aclose(self) -> None:
        """End all tracers permanently, and wait for them."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(tracer.process.aclose() for tracer in self.all))
        while self._ends:
            await asyncio.wait(self._ends)

    def _spawn(self) -> PooledTracer:
        tracer = PooledTracer(self._spawn_process())
        self._start_task(self._await_end(tracer), self._ends)
        return tracer

    def _start_task(
        self, work: Coroutine[None, None, None], among: set[asyncio.Task[None]]
    ) -> None:
        # Kept in a set, as the event loop has only weak references to tasks.
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)

    async def _report_ready(self, tracer: PooledTracer) -> None:
        """Report that the active tracer is ready, and start a spare soon."""
        # Shielded: cancelling this task must not cancel what others await.
        hello = await asyncio.shield(tracer.process.ready)
        if hello is None or tracer is not self.active:
            return
        if hello.problem:
            self._reject(tracer, hello)
            return
        self.problem = ""
        if self.is_paused:
            self._on_status(TracerStatus(State.READY, "", hello))
        await asyncio.sleep(SPARE_DELAY)
        if tracer is self.active and self._spare is None:
            self._add_spare()

    def _replace_spare(self) -> None:
        """Start a spare if there is none, unless the last one has died young."""
        if self._spare is None and time.monotonic() - self._spared_at > YOUNG:
            self._add_spare()

    def _add_spare(self) -> None:
        if self._spare_wanted and not self._closed:
            self._spare = self._spawn()
            self._spared_at = time.monotonic()

    def _reject(self, tracer: PooledTracer, hello: Hello) -> None:
        """Reject an environment that cannot trace; its handshake has the reason."""
        if tracer.process.alive:
            self._fail(hello.problem, REFUSED_PAUSE)
            tracer.process.kill(Death(Reason.UNAVAILABLE, last_words=hello.problem))

    async def _await_end(self, tracer: PooledTracer) -> None:
        """Wait for a tracer's death, and until all its processes have exited."""
        self._replace(tracer, await asyncio.shield(tracer.process.death))
        await tracer.process.aclose()

    def _replace(self, tracer: PooledTracer, death: Death) -> None:
        """Replace a dead tracer by the next one."""
        if tracer is self._spare:
            self._spare = None
            if death.reason is not Reason.STOPPED:
                log.warning("a spare tracer died: %s", death)
        elif tracer is self.active:
            self.active = None
            self._delay_after_failure(tracer, death)
            self.ensure_active()
            self._on_death(tracer, death)

    def _delay_after_failure(self, tracer: PooledTracer, death: Death) -> None:
        """Delay the next start if tracers die before their first request."""
        if death.reason in (Reason.STOPPED, Reason.SPOILED, Reason.UNAVAILABLE):
            return
        is_old = tracer.hello is not None and time.monotonic() - tracer.began > YOUNG
        if tracer.has_run_request or is_old:
            self._young_deaths = 0
            return
        last_words = death.last_words.strip().rpartition("\n")[2]
        if death.code == TOO_OLD:
            self._fail(last_words, REFUSED_PAUSE)
            return
        self._young_deaths += 1
        if self._young_deaths == 1:
            return
        log.warning("%s: %s", self._python, death.last_words)
        problem = "exited unexpectedly" if tracer.hello is not None else _start_failure(death)
        is_final = self._young_deaths >= TRIES
        pause = float("inf") if is_final else FIRST_PAUSE * 2 ** (self._young_deaths - 2)
        self._fail(
            f"Failed to start the tracer with {self._python}: {problem}"
            f"{f' ({last_words})' if last_words else ''}. Choose another interpreter with the "
            "setting `jaxsight.python`, or restart jaxsight.",
            pause,
        )

    def _fail(self, problem: str, pause: float) -> None:
        self.problem = problem
        self._retry_at = time.monotonic() + pause
        self._on_status(TracerStatus(State.FAILED, problem))


def _start_failure(death: Death) -> str:
    exited = f"exited on startup with status {death.code}"
    known = {
        Reason.TIMEOUT: f"no handshake within {death.limit:g} s",
        Reason.PROTOCOL: "unexpected handshake",
        Reason.CRASHED: "crashed on startup",
    }
    return known.get(death.reason, exited)
