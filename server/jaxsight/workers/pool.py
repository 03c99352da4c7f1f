"""The tracer at work and the warm spare behind it: when they start, when one takes over, when
nothing is tried any more.

A pool always has a tracer at work or starting, unless none starts at all. It must never let a death
pass unnoticed, nor start processes faster than a broken environment deserves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from jaxsight.tracer.protocol import Hello, Overlay
from jaxsight.workers.limits import MIB
from jaxsight.workers.outcomes import Death, Reason, State, Status
from jaxsight.workers.process import TracerProcess

log = logging.getLogger(__name__)

YOUNG = 10.0
"""Seconds: a tracer that dies before this age, with nothing done, points to its environment."""
TRIES = 5
"""Such deaths in a row after which nothing is tried until a restart."""
FIRST_PAUSE = 0.5
"""Seconds from the second such death to the next try, doubled with each further one."""
REFUSED_PAUSE = 10.0
"""Seconds until an interpreter is asked again that said it cannot trace: JAX may have been
installed meanwhile.
"""

SPARE_DELAY = 2.0
"""Seconds that a spare's start waits at most for a pause: it would take the processor of the first
requests.
"""

RECYCLE_AFTER = 5000
"""Answers after which an idle tracer gives way to the spare."""
WARM_UP = 10
RECYCLE_GROWTH = 2.0
RECYCLE_SLACK = 256 * MIB
"""It gives way too when it has grown beyond so many times the size that it had after so many
answers, and this much more.
"""


@dataclass(eq=False, slots=True)
class Tracer:
    """A process with what the pool knows of it."""

    process: TracerProcess
    began: float = field(default_factory=time.monotonic)
    asked: bool = False
    """A request had begun in it: user code ran."""
    answered: int = 0
    warm_size: int = 0
    overlays: dict[str, str] = field(default_factory=dict)
    """Those that it was given."""

    @property
    def hello(self) -> Hello | None:
        return self.process.ready.result() if self.process.ready.done() else None

    @property
    def outgrown(self) -> bool:
        bound = self.warm_size * RECYCLE_GROWTH + RECYCLE_SLACK
        return self.answered >= RECYCLE_AFTER or (
            self.warm_size > 0 and bound < self.process.resident
        )

    def count_answer(self) -> None:
        """It gave one more answer."""
        self.answered += 1
        if self.answered == WARM_UP:
            self.warm_size = self.process.resident

    def give(self, overlays: dict[str, str]) -> None:
        """Bring it up to date with the editor's texts."""
        for path, text in overlays.items():
            if self.overlays.get(path) is not text:
                self.process.send(Overlay(path, text))
        for path in self.overlays.keys() - overlays.keys():
            self.process.send(Overlay(path, None))
        self.overlays = dict(overlays)


class Pool:
    """See the module's docstring."""

    def __init__(
        self,
        python: str,
        spawn: Callable[[], TracerProcess],
        *,
        spare: bool,
        on_status: Callable[[Status], None],
        on_death: Callable[[Tracer, Death], None],
        on_spare: Callable[[Tracer], None],
    ) -> None:
        """Nothing is started yet.

        Args:
            python: the interpreter, for messages.
            spawn: starts a process.
            spare: keep a second one.
            on_status: told when one starts, is ready, or cannot be had.
            on_death: told when the one at work died; the next one has taken over already.
            on_spare: told when the spare is ready.
        """
        self.at_work: Tracer | None = None
        self.problem = ""
        """Why there is no tracer, and what helps; `""` when there is one."""
        self.paused = asyncio.Event()
        """Set while no request is at work: the time to start a spare."""
        self.paused.set()
        self._python = python
        self._spawn_process = spawn
        self._spare: Tracer | None = None
        self._spare_wanted = spare
        self._on_status = on_status
        self._on_death = on_death
        self._on_spare = on_spare
        self._spared_at = 0.0
        self._young_deaths = 0
        self._retry_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def spare(self) -> Tracer | None:
        """The spare, if it is ready to take over."""
        spare = self._spare
        ready = spare is not None and spare.hello is not None and spare.process.alive
        return spare if ready else None

    @property
    def all(self) -> list[Tracer]:
        """The tracer at work and the spare, as far as there are any."""
        return [each for each in (self.at_work, self._spare) if each is not None]

    def fill(self) -> None:
        """See to it that a tracer is at work or starting, unless a new one has to wait."""
        if self._closed or self.at_work is not None:
            return
        if self._spare is not None:
            self.at_work, self._spare = self._spare, None
        elif time.monotonic() >= self._retry_at:
            self._on_status(Status(State.STARTING, f"Starting {self._python}"))
            self.at_work = self._spawn()
        else:
            return
        self._do(self._welcome(self.at_work))

    async def ready(self) -> Tracer | None:
        """The tracer to ask, once it greeted; `None` when there can be none now, for which
        `problem` is the reason.
        """
        while True:
            self.fill()
            tracer = self.at_work
            if tracer is None:
                return None
            hello = await asyncio.shield(tracer.process.ready)
            if hello is not None and hello.problem:
                self._refuse(tracer, hello)
                return None
            if hello is not None and tracer is self.at_work and tracer.process.alive:
                return tracer
            self._lose(tracer, await asyncio.shield(tracer.process.death))

    def rest(self) -> None:
        """There is nothing to do: replace a spare that was lost, and let a tracer that has grown
        give way to the spare.
        """
        tracer, spare = self.at_work, self.spare
        if tracer is None or not tracer.process.alive or tracer.hello is None:
            return
        if self._spare is None and time.monotonic() - self._spared_at > YOUNG:
            self._add_spare()
        if spare is not None and tracer.outgrown:
            log.info("recycling tracer %d after %d answers", tracer.process.pid, tracer.answered)
            self.at_work, self._spare = spare, None
            tracer.process.kill(Death(Reason.STOPPED))
            self._do(self._welcome(spare))

    async def restart(self) -> None:
        """End all, forget what went wrong, and start anew."""
        old = self.all
        self.at_work = self._spare = None
        self._young_deaths = 0
        self._retry_at = 0.0
        self.problem = ""
        await asyncio.gather(*(each.process.aclose() for each in old))
        self.fill()

    def keep_spare(self, wanted: bool) -> None:
        """Have a spare from now on, or none."""
        self._spare_wanted = wanted
        at_work = self.at_work
        if not wanted and self._spare is not None:
            self._spare.process.kill(Death(Reason.STOPPED))
        elif wanted and self._spare is None and at_work is not None and at_work.hello is not None:
            self._add_spare()

    async def sleep(self) -> None:
        """End all until a tracer is asked for."""
        old = self.all
        self.at_work = self._spare = None
        await asyncio.gather(*(each.process.aclose() for each in old))

    async def aclose(self) -> None:
        """End all, for good, and wait for it."""
        self._closed = True
        self.paused.set()
        await asyncio.gather(*(each.process.aclose() for each in self.all))
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _spawn(self) -> Tracer:
        tracer = Tracer(self._spawn_process())
        self._do(self._bury(tracer))
        return tracer

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _welcome(self, tracer: Tracer) -> None:
        """Tell that the tracer at work is ready, and start a spare when there is a pause."""
        hello = await asyncio.shield(tracer.process.ready)
        if hello is None or tracer is not self.at_work:
            return
        if hello.problem:
            self._refuse(tracer, hello)
            return
        self.problem = ""
        if self.paused.is_set():
            self._on_status(Status(State.READY, "", hello))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.paused.wait(), SPARE_DELAY)
        if tracer is self.at_work and self._spare is None:
            self._add_spare()

    def _add_spare(self) -> None:
        if self._spare_wanted and not self._closed:
            self._spare = self._spawn()
            self._spared_at = time.monotonic()
            self._do(self._greet_spare(self._spare))

    async def _greet_spare(self, tracer: Tracer) -> None:
        await asyncio.shield(tracer.process.ready)
        if tracer is self.spare:
            self._on_spare(tracer)

    def _refuse(self, tracer: Tracer, hello: Hello) -> None:
        """The interpreter cannot trace, and says why."""
        if tracer.process.alive:
            self._fail(hello.problem, REFUSED_PAUSE)
            tracer.process.kill(Death(Reason.UNAVAILABLE, last_words=hello.problem))

    async def _bury(self, tracer: Tracer) -> None:
        """Wait for a tracer's death, whenever it comes, and for all of it to be gone."""
        self._lose(tracer, await asyncio.shield(tracer.process.death))
        await tracer.process.aclose()

    def _lose(self, tracer: Tracer, death: Death) -> None:
        """A tracer is dead: the next one takes its place."""
        if tracer is self._spare:
            self._spare = None
            if death.reason is not Reason.STOPPED:
                log.warning("a spare tracer died: %s", death)
        elif tracer is self.at_work:
            self.at_work = None
            self._count(tracer, death)
            self.fill()
            self._on_death(tracer, death)

    def _count(self, tracer: Tracer, death: Death) -> None:
        """Put off the next start when tracers die without having done anything."""
        if death.reason in (Reason.STOPPED, Reason.SPOILED, Reason.UNAVAILABLE):
            return
        if tracer.asked or (tracer.hello is not None and time.monotonic() - tracer.began > YOUNG):
            self._young_deaths = 0
            return
        self._young_deaths += 1
        if self._young_deaths == 1:
            return
        words = f"\n{death.last_words}" if death.last_words else ""
        what = "exited unexpectedly" if tracer.hello is not None else _no_start(death)
        given_up = self._young_deaths >= TRIES
        pause = float("inf") if given_up else FIRST_PAUSE * 2 ** (self._young_deaths - 2)
        self._fail(
            f"Failed to start the tracer with {self._python}: {what}. Choose another interpreter "
            f"with the setting `jaxsight.python`, or restart jaxsight.{words}",
            pause,
        )

    def _fail(self, problem: str, pause: float) -> None:
        self.problem = problem
        self._retry_at = time.monotonic() + pause
        self._on_status(Status(State.FAILED, problem))


def _no_start(death: Death) -> str:
    match death.reason:
        case Reason.TIMEOUT:
            return f"no handshake within {death.limit:g} s"
        case Reason.PROTOCOL:
            return "unexpected handshake"
        case Reason.CRASHED:
            return "crashed on startup"
        case _:
            return f"exited on startup with status {death.code}"
