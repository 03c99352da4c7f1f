"""The requests to tracers and compilers that wait, and those that run.

The most urgent request runs first, the oldest of several.
A request that waits may run past one that takes long, if it does not need the step that takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from operator import itemgetter

from jaxsight.files.texts import Version
from jaxsight.wire.messages.inputs import DryCall, EntryPoint
from jaxsight.wire.messages.replies import Stage
from jaxsight.wire.messages.requests import AboutTrace, DryRun, Request, Sourcerize, Trace
from jaxsight.wire.observations import DRY_RUN
from jaxsight.workers.pool import PooledTracer
from jaxsight.workers.results import Death, Died, Outcome

SLOW = 1.0
"""Seconds after which a step that runs is reported, and requests that somebody waits for run past
it, a choice: with less, mere imports would start a second process; with more, a hover waits."""
SLOW_TRACE = 5.0
"""Seconds after which other requests run past a trace, a choice: a large function takes long to
trace, and a second process that traces takes as much memory."""


class Priority(IntEnum):
    """The origin of a request; lower values run first."""

    PERSON = 0
    """A person asked and waits, e.g. for a hover."""
    SCREEN = 1
    """What is on screen, or at the cursor, shows it."""
    DOCUMENT = 2
    BACKGROUND = 3


class Haste:
    """The priority of a request, which rises when somebody more urgent joins in waiting."""

    def __init__(self, priority: Priority) -> None:
        self.priority = priority
        self.on_rise: Callable[[], None] | None = None
        """What is called when the priority has risen."""

    def rise(self, priority: Priority) -> None:
        """Let the request be at least this urgent, also if it waits already."""
        if priority < self.priority:
            self.priority = priority
            if self.on_rise is not None:
                self.on_rise()


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """What occupies a tracer."""

    title: str
    """The request."""
    file: str
    stage: str
    statement: str
    """The first line of the statement that is executed; empty in other stages."""
    chunk: str
    seconds: float
    """How long it has taken so far."""


@dataclass(eq=False, slots=True)
class QueuedRequest:
    """A request with its answer, and its current step if it runs."""

    message: Request[object]
    haste: Haste
    on_stage: Callable[[Stage], None] | None
    texts: Mapping[str, str] | None = None
    """The editor's texts by path, as they were when it was asked; `None` if it needs none."""
    answer: asyncio.Future[Outcome[object]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    tracer: PooledTracer | None = None
    stage: str = ""
    chunk: str = ""
    """The id of the chunk that is executed."""
    detail: str = ""
    """The first line of that chunk."""
    programs: int = 0
    """The number of programs that have begun to run dry."""
    since: float = 0.0
    """When the step began, as the event loop's time in seconds."""
    timer: asyncio.Timeout | None = None
    cancelled_at: float | None = None
    """Time of the event loop, in seconds."""

    def settle(self, outcome: Outcome[object]) -> None:
        """Give the answer, unless there is one."""
        if not self.answer.done():
            self.answer.set_result(outcome)

    def reach(self, reached: Stage) -> None:
        """Take note of the step that the tracer has reached."""
        self.stage, self.chunk, self.detail = reached.stage, reached.chunk, reached.detail
        self.programs += reached.stage == DRY_RUN
        self.since = asyncio.get_running_loop().time()

    def begin_again(self) -> None:
        """Forget the steps of a process that could not answer."""
        self.stage = self.chunk = self.detail = ""
        self.programs = 0

    def died(self, death: Death, files: Mapping[str, Version]) -> Died:
        """Return the outcome of its death, with what it did then and what was imported."""
        program: EntryPoint | None = None
        match self.message:
            case DryRun(entries=entries) if self.programs:
                program = entries[self.programs - 1]
            case Trace(dry_call=DryCall(entry=entry)) if self.stage == "inputs":
                program = entry
        return Died(
            self.message.id,
            self.stage,
            death,
            files=tuple(files.items()),
            chunk=self.chunk,
            statement=self.detail if self.chunk else "",
            program=program,
        )

    @property
    def step(self) -> CurrentStep:
        """What it does now."""
        slice = self.message.executes
        file, statement = slice.file if slice is not None else "", self.detail if self.chunk else ""
        elapsed = asyncio.get_running_loop().time() - self.since if self.stage else 0.0
        return CurrentStep(self.message.title, file, self.stage, statement, self.chunk, elapsed)

    @property
    def words(self) -> str:
        """What it does now, and for how long if that is long."""
        step = self.step
        if step.seconds < SLOW:
            return step.title
        return f"{step.title}: {self.detail or step.stage} ({step.seconds:.0f} s)"

    def is_slow_for(self, other: QueuedRequest) -> bool:
        """Return whether its current step takes so long that another request should run past it."""
        patient = not self.chunk and other.haste.priority > Priority.SCREEN
        return self.step.seconds >= (SLOW_TRACE if patient else SLOW)


def take_first(
    waiting: list[QueuedRequest], may_run: Callable[[QueuedRequest], bool] = lambda entry: True
) -> QueuedRequest | None:
    """Take the first request that may run: the most urgent one, the oldest of several."""
    found = min(filter(may_run, waiting), key=lambda entry: entry.haste.priority, default=None)
    if found is not None:
        waiting.remove(found)
    return found


def can_pass(entry: QueuedRequest, slow: QueuedRequest, tracer: PooledTracer) -> bool:
    """Return whether a second tracer can answer a request without the step that takes long.

    The statement that takes long is recognized by its text: other files may have it, too. In the
    same file it is skipped where nothing needs it, once it has taken too long for that.
    """
    message = entry.message
    if not slow.is_slow_for(entry):
        return False
    if isinstance(message, AboutTrace):
        return message.trace in tracer.traced
    slice, slow_slice = message.executes, slow.message.executes
    if slice is None or slow_slice is None:
        return False
    if not slow.chunk:
        return (slice.file, slice.function) != (slow_slice.file, slow_slice.function)
    texts = {chunk.text.strip() for chunk in slow_slice.chunks if chunk.id == slow.chunk}
    is_skipped = slice.file == slow_slice.file and slow.step.seconds >= slice.patience
    return not any(
        chunk.text.strip() in texts and not (is_skipped and chunk.may_be_skipped)
        for chunk in slice.chunks
    )


class SlowStatements:
    """Statements that took too long for requests that do not need them, by their files and keys."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()

    def note(self, entry: QueuedRequest) -> None:
        """Remember the statement of a request that was stopped, if it took too long."""
        slice = entry.message.executes
        if slice is not None and entry.chunk and entry.step.seconds >= slice.patience:
            keys = (chunk.key for chunk in slice.chunks if chunk.id == entry.chunk)
            self._known.update((slice.file, key) for key in keys)

    def told(self, message: Request[object]) -> Request[object]:
        """Return a request that says which of its statements are known to be slow."""
        slice = message.executes
        chunks = slice.chunks if slice is not None else ()
        slow = tuple(each.id for each in chunks if slice and (slice.file, each.key) in self._known)
        if slow and isinstance(message, Trace):
            return replace(message, slow=slow)
        if slow and isinstance(message, DryRun | Sourcerize):
            return replace(message, run=replace(message.run, slow=slow))
        return message


# The requests that wait for a compiler.


@dataclass(eq=False, slots=True)
class Queue:
    """A lock whose next owner is the most urgent one that waits."""

    is_busy: bool = False
    _waiting: list[tuple[Priority, asyncio.Future[None]]] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def turn(self, urgency: Priority) -> AsyncIterator[None]:
        """Wait until nobody else is in the body, and nobody more urgent waits."""
        if self.is_busy:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((urgency, turn))
            try:
                await turn
            except asyncio.CancelledError:
                # Its turn had begun already: pass it on, as nobody else would.
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self.is_busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the next one in; the queue stays busy on its behalf."""
        # The others were cancelled while they waited.
        self._waiting = [each for each in self._waiting if not each[1].done()]
        self.is_busy = bool(self._waiting)
        if self._waiting:
            first = min(self._waiting, key=itemgetter(0))
            self._waiting.remove(first)
            first[1].set_result(None)
