"""What a traced function becomes on a target: lowered by its tracer, looked up, compiled if nobody has before.

Each stage is known by its content. An answer is lowered once for a platform (and for each kind of NVIDIA's GPUs, as Pallas kernels differ); a program is compiled once for a target, whoever asks, in whatever file it stands, and
the disk remembers. An edit that leaves the program what it was compiles nothing. What could not be compiled is a `Trouble`, in words.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from jaxsight.compiler import environments
from jaxsight.compiler.cache import Cache, digest
from jaxsight.compiler.environments import Environment, identity
from jaxsight.compiler.protocol import Compile, Compiled
from jaxsight.compiler.targets import CPU, PREFERRED, Target, parse
from jaxsight.engine.cache import Recent
from jaxsight.engine.events import Event, Progress
from jaxsight.engine.views import Answer
from jaxsight.tracer.protocol import Failed, Failure, Fold, Lowered
from jaxsight.workers.compilers import Compilers, Trouble
from jaxsight.workers.outcomes import Died

log = logging.getLogger(__name__)

_KEPT = 256
LONG = 0.7
"""Seconds after which a compile is worth a progress message."""

NotSent = Callable[[str, str], str]
"""Says why nothing of a file is compiled on a host, by both names; empty where it is."""

Lower = Callable[[Answer, Target], Awaitable[Lowered | Failed | Died | None]]
"""Has the tracer that traced an answer lower it for a target; `None` when it is gone."""


def _refused(failure: Failure, target: Target) -> str:
    """Why something is not lowered: the tracer's own objection, or what JAX raises."""
    if failure.type.startswith("jaxsight."):
        return failure.message
    name = failure.type.rpartition(".")[2]
    words = f"{name}: {failure.message}" if failure.message.strip() else name
    return f"JAX does not lower it for {target.name}: {words}"


class Gone(Exception):
    """The tracer that traced the answer is no more: trace again."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an answer on a target."""

    target: Target
    lowered: Lowered | None
    outcome: Compiled | Trouble


@dataclass(eq=False, slots=True)
class _Running:
    task: asyncio.Task[Compiled | Trouble]
    waiting: int = 0


@dataclass(eq=False, slots=True)
class Compiling:
    """One per session."""

    events: asyncio.Queue[Event]
    compilers: Compilers
    cache: Cache
    not_sent: NotSent
    _lowered: Recent[tuple[str, str, str], tuple[Answer, Lowered | Trouble]] = field(
        default_factory=lambda: Recent(_KEPT)
    )
    _compiled: Recent[str, Compiled | Trouble] = field(default_factory=lambda: Recent(_KEPT))
    _results: Recent[tuple[str, str], tuple[Answer, Result]] = field(
        default_factory=lambda: Recent(_KEPT)
    )
    _running: dict[str, _Running] = field(default_factory=dict)

    def known(self, answer: Answer, target: Target) -> Result | None:
        """The result for an answer, if there is one already."""
        found = self._results.get((answer.question.key, target.name))
        return found[1] if found is not None and found[0] is answer else None

    async def get(self, answer: Answer, target: Target, python: str, lower: Lower) -> Result:
        """The result for an answer.

        Args:
            python: the interpreter that traced it; it compiles for this machine's own devices.

        Raises:
            Gone: it has to be traced again.
        """
        if target.host and (why := self.not_sent(answer.question.path, target.host)):
            return Result(target, None, Trouble("approval", f"{why}.", last=False))
        if (known := self.known(answer, target)) is not None:
            return known
        lowered = await self._lower(answer, target, lower)
        if isinstance(lowered, Trouble):
            result = Result(target, None, lowered)
        elif traps := [fold for fold in lowered.folds if fold.trap]:
            result = Result(target, lowered, _trap(traps[0]))
        else:
            result = Result(target, lowered, await self._compile(lowered, target, python, answer))
        if isinstance(result.outcome, Compiled) or result.outcome.last:
            self._results.put((answer.question.key, target.name), (answer, result))
        return result

    def forget(self) -> None:
        """Believe no failure any more: something was installed, or a setting changed."""
        self._results.clear()
        self._compiled.clear()
        self._lowered.clear()

    async def aclose(self) -> None:
        """End all."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.compilers.aclose()

    async def _lower(self, answer: Answer, target: Target, lower: Lower) -> Lowered | Trouble:
        key = answer.question.key, target.platform, target.capability
        known = self._lowered.get(key)
        if known is not None and known[0] is answer:
            return known[1]
        reply = await lower(answer, target)
        lowered: Lowered | Trouble
        match reply:
            case None:
                raise Gone
            case Lowered():
                lowered = reply
            case Failed(failure=failure):
                lowered = Trouble("lower", _refused(failure, target))
            case Died() as died:
                return Trouble("lower", died.message, last=not died.external)
        self._lowered.put(key, (answer, lowered))
        return lowered

    async def _compile(
        self, lowered: Lowered, target: Target, python: str, answer: Answer
    ) -> Compiled | Trouble:
        found = await asyncio.to_thread(environment_of, target, python, lowered.jaxlib)
        if isinstance(found, Trouble):
            return found
        if target.host:
            has = await self.compilers.jaxlib(target, found)
            if isinstance(has, Trouble):
                return has
            name = digest(lowered.key, *identity(replace(found, jax=has), target))
        else:
            name = digest(lowered.key, *identity(found, target))
        known = self._compiled.get(name)
        if known is not None:
            return known
        running = self._running.get(name)
        if running is None:
            work = self._work(name, lowered, target, found, answer)
            running = _Running(asyncio.get_running_loop().create_task(work))
            self._running[name] = running
            running.task.add_done_callback(lambda task: self._ended(name, task))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        except asyncio.CancelledError:
            if running.waiting == 1 and not running.task.done():
                running.task.cancel()
            raise
        finally:
            running.waiting -= 1

    def _ended(self, name: str, task: asyncio.Task[Compiled | Trouble]) -> None:
        if not task.cancelled():
            task.exception()
        running = self._running.get(name)
        if running is not None and running.task is task:
            del self._running[name]

    async def _work(
        self, name: str, lowered: Lowered, target: Target, environment: Environment, answer: Answer
    ) -> Compiled | Trouble:
        outcome: Compiled | Trouble | None = await asyncio.to_thread(self.cache.get, name)
        if outcome is None:
            request = Compile(
                0,
                target.name,
                lowered.program,
                options=lowered.options,
                constants=lowered.constants,
                barriers=lowered.barriers,
                trips=lowered.trips,
            )
            what = f"{answer.question.subject.name} for {target.short}"
            key = f"compile {name}"
            ticking = asyncio.get_running_loop().create_task(self._tick(key, what))
            try:
                outcome = await self.compilers.compile(target, environment, request)
            finally:
                ticking.cancel()
                self.events.put_nowait(Progress(key, "Compiling", done=True))
            if isinstance(outcome, Compiled):
                await asyncio.to_thread(self.cache.put, name, outcome)
        if isinstance(outcome, Compiled) or outcome.last:
            self._compiled.put(name, outcome)
        return outcome

    async def _tick(self, key: str, what: str) -> None:
        """Tell how long it takes, each second, once it takes long."""
        await asyncio.sleep(LONG)
        seconds = LONG
        while True:
            self.events.put_nowait(Progress(key, "Compiling", f"{what}… {seconds:.0f} s"))
            await asyncio.sleep(1.0)
            seconds += 1.0


def chosen_targets(target: str, more: tuple[str, ...], jax: str) -> tuple[Target, ...]:
    """The targets that the settings ask for, the main one first; the default where they ask for none.

    Args:
        target: the setting `target`; may be empty.
        more: the setting `targets`.
        jax: the user's version, for which the default must be installed.
    """
    chosen = [parse(name) for name in (target or default_target(jax), *more)]
    return tuple({each.name: each for each in chosen}.values())


_default: dict[str, tuple[float, str]] = {}
_LOOK_AGAIN = 5.0


def default_target(jax: str) -> str:
    """An H100 where its compiler is installed, else this machine's CPU. What is installed is looked at every few seconds."""
    now = time.monotonic()
    known = _default.get(jax)
    if known is None or now - known[0] > _LOOK_AGAIN:
        name = PREFERRED if environments.suiting("cuda", jax) is not None else CPU
        known = _default[jax] = (now, name)
    return known[1]


def environment_of(target: Target, python: str, jax: str) -> Environment | Trouble:
    """The interpreter that compiles for a target."""
    if target.host:
        return Environment("ssh", "", jax)
    if target.chip is None:
        platform = "here" if target.platform == CPU else f"here-{target.platform}"
        return Environment(platform, python, jax)
    found = environments.suiting(target.platform, jax)
    if found is None:
        size = environments.MEGABYTES[target.platform]
        return Trouble(
            "missing",
            f"The compiler for {target.name} is not installed: `jaxsight targets install {target.platform}` "
            f"gets it (about {size} MB).",
        )
    return found


def _trap(fold: Fold) -> Trouble:
    return Trouble(
        "fold",
        f"XLA would constant-fold `{fold.primitive}` of {fold.elements:,} elements, which takes about "
        f"{fold.seconds:.0f} s: make an operand an argument",
    )
