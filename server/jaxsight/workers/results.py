"""Outcomes of requests beside the tracer's own answers, and a supervisor's events: plain data."""

from __future__ import annotations

import signal as signals
from collections.abc import Awaitable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import TypeAlias, TypeVar, Union

from jaxsight.files.texts import Version
from jaxsight.text import units
from jaxsight.text.layout import cut
from jaxsight.wire.messages.inputs import EntryPoint
from jaxsight.wire.messages.replies import (
    Cancelled,
    DryCalls,
    Failed,
    Hello,
    Traced,
)
from jaxsight.wire.messages.requests import Request

SENT_BY_OTHERS = (9, 15)
"""SIGKILL and SIGTERM, signal(7): sent by a user, or by the kernel when memory runs out."""


class Reason(Enum):
    """Why a tracer died."""

    EXITED = "exited"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    PROCESSES = "processes"
    PROTOCOL = "protocol"
    """It closed its pipe to the server, or wrote something else than messages."""
    STOPPED = "stopped"
    """The server ended it, for a restart, a shutdown, or a cancelled request that did not end."""
    SPOILED = "spoiled"
    """Effects of a file could not be undone, so that other files need a new tracer.

    The last words name the effects.
    """
    UNAVAILABLE = "unavailable"
    """None could be started; the last words have the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a tracer's process.

    `signal` is 0 if it exited by itself; `used` and `limit` are bytes, a count or seconds.
    """

    reason: Reason
    code: int = 0
    signal: int = 0
    used: float = 0
    limit: float = 0
    last_words: str = ""
    """The end of its output."""


@dataclass(frozen=True, slots=True)
class Died:
    """Request `id` has no answer: its tracer died in `stage` (`""` before the first).

    The next tracer has replaced it.
    `repeated`: this is the death of an earlier attempt; the request was not run again, because it
    would end another tracer.
    """

    id: int
    stage: str
    death: Death
    repeated: bool = False
    files: tuple[tuple[str, Version], ...] = ()
    """The project's files that its process had imported, as they were."""
    chunk: str = ""
    """The statement that was executed, by its id."""
    statement: str = ""
    """The first line of the statement that was executed."""
    program: EntryPoint | None = None
    """The program that was run dry."""

    @property
    def external(self) -> bool:
        """Whether the cause may be outside the request, so that another attempt may succeed."""
        killed = self.death.signal in SENT_BY_OTHERS
        return killed or self.death.reason in (Reason.STOPPED, Reason.UNAVAILABLE)

    @property
    def is_own(self) -> bool:
        """Whether its process ended while it ran something, and not because we ended it."""
        ended_by_us = (Reason.SPOILED, Reason.STOPPED, Reason.UNAVAILABLE)
        return self.stage != "" and self.death.reason not in ended_by_us

    @property
    def is_deserved(self) -> bool:
        """Whether what it ran has ended it, and would do so again."""
        return self.is_own and not self.external

    @property
    def message(self) -> str:
        """The error, in one clause."""
        doing, _ = _STAGES.get(self.stage, ("the request", ""))
        if self.statement:
            doing = f"executing `{cut(self.statement.replace('`', chr(39)), _QUOTED)}`"
        elif self.program is not None:
            doing = f"`{cut(self.program.title, _QUOTED)}`"
            if self.program.function:
                doing += f" of {cut(PurePath(self.program.file).name, _QUOTED)}"
        death = self.death
        match death.reason:
            case Reason.CRASHED:
                what = f"crashed the process ({signal_name(death.signal)})"
            case Reason.MEMORY:
                used, limit = units.size(death.used), units.size(death.limit)
                what = f"used {used} of memory, limit {limit}"
            case Reason.UNAVAILABLE:
                return death.last_words
            case reason:
                what = _ENDINGS[reason].format(death)
        return f"{doing} {what}"

    @property
    def help(self) -> str:
        """The setting to change, or how to run it again; empty if neither helps."""
        match self.death.reason:
            case Reason.TIMEOUT if self.stage != "wait":  # which no setting limits
                _, setting = _STAGES.get(self.stage, ("", ""))
                return f"increase the setting `timeouts.{setting or 'trace'}`"
            case Reason.MEMORY:
                return "increase the setting `memoryLimit`"
            case Reason.CRASHED | Reason.EXITED if not self.external:
                return HOW_TO_RUN_AGAIN
            case _:
                return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts, one clause each."""
        return ("it will not run again until the code changes",) if self.repeated else ()


_QUOTED = 40
"""Characters of a statement or a program in a message, a choice: it is one clause."""

HOW_TO_RUN_AGAIN = "edit it, or run `jaxsight.restart`"

_STAGES = {
    "execute": ("executing the module", "execute"),
    "inputs": ("evaluating the example inputs", "inputs"),
    "trace": ("tracing the function", ""),
    "lower": ("lowering the function", ""),
    "compare": ("running the function", ""),
    "wait": ("waiting for another measurement", ""),
    "compile": ("compiling the function", "compile"),
    "measure": ("running the function", "measure"),
    "profile": ("profiling the function", "measure"),
}
"""What is done in each stage, and the setting of its time limit if that is not `timeouts.trace`."""

_ENDINGS = {
    Reason.EXITED: "exited the process with status {0.code}",
    Reason.TIMEOUT: "took longer than {0.limit:g} s",
    Reason.PROCESSES: "started {0.used:g} processes, limit {0.limit:g}",
    Reason.PROTOCOL: "disconnected the process from the server",
    Reason.STOPPED: "was stopped",
    Reason.SPOILED: "failed again in a new process",
}
"""What a request did to its process, by the reason of the death."""

R = TypeVar("R")

Outcome: TypeAlias = Union[R, Failed, Cancelled, Died]  # noqa: UP007 - a generic alias
"""The end of a request whose reply is a `Reply`."""


@dataclass(slots=True)
class Sources:
    """Files with the versions that tracers reported."""

    files: dict[str, Version] = field(default_factory=dict)
    unknown: int = 0
    """Questions whose answers depend on files that are not known, or that have changed since."""

    async def collect(self, asked: Awaitable[R]) -> R:
        """Return the answer to a question, after adding its files.

        Those of a question that is cancelled, or that ends its tracer, are not known. An answer
        about an earlier one has none of its own.
        """
        self.unknown += 1
        match reply := await asked:
            case Traced() | Failed() | DryCalls():
                kept = (self.files.setdefault(path, version) for path, version in reply.files)
                are_same = list(kept) == [version for _, version in reply.files]
                self.unknown -= are_same
            case Died() | Cancelled():
                pass
            case _:
                self.unknown -= 1
        return reply


def is_internal(outcome: Outcome[object]) -> bool:
    """Return whether the tracer itself failed, not user code."""
    return isinstance(outcome, Failed) and outcome.failure.stage == "internal"


def unavailable(message: Request[object], why: str) -> Died:
    """Return the outcome of a request that no tracer could answer."""
    return Died(message.id, "", Death(Reason.UNAVAILABLE, last_words=why))


class State(Enum):
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TracerStatus:
    """The state of the tracers; `hello` is the handshake of the tracer in use.

    `message` is the current step or, after a failure, the error and what to do.
    """

    state: State
    message: str = ""
    hello: Hello | None = None


@dataclass(frozen=True, slots=True)
class TracerOutput:
    """Output of user code while `file` was run (`""`: between requests, from a thread)."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A tracer died or was ended, and the next one replaced it.

    `file` is the file of its request, or empty between requests.
    """

    death: Death
    file: str = ""


Event = TracerStatus | TracerOutput | Replaced


def signal_name(number: int) -> str:
    """Return the name and description of a signal, e.g. `SIGSEGV, segmentation fault`."""
    try:
        name = signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name}, {(signals.strsignal(number) or 'unknown').lower()}"
