"""Events that the engine sends to its owner: plain data on one queue, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ready", "busy", "failed", "untrusted"]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the tracer of one project root.

    `detail` is one sentence for people; if `state` is `failed`, it says what to do.
    """

    root: str
    state: State
    detail: str = ""
    python: str = ""
    """The Python interpreter's path; `reason` says why it was chosen."""
    reason: str = ""
    jax: str = ""
    confined: str = ""
    """What the system keeps the folder's code from while it is looked at."""


TargetProblem = Literal["", "missing", "unreachable", "waiting"]
"""Why nothing is compiled for a target: its compiler is not installed, its host does not answer, or
waits for the user's approval."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What an open file is compiled for, and which of its functions can be shown."""

    path: str
    target: str = ""
    target_title: str = ""
    """The device of the target, and why it is the default one."""
    problem: TargetProblem = ""
    detail: str = ""
    """The problem for people, in one sentence."""
    functions: int = 0
    """The number of functions and methods."""
    traced: int = 0
    """The number of those with example inputs, assumed ones included."""
    uses_jax: bool = False
    """Whether the file imports JAX or a library on top of it."""
    why: str = ""
    """Why functions that use JAX show nothing, or which modules are missing, in a clause."""
    why_detail: str = ""
    """The same in whole sentences, for a tooltip."""
    using_jax: int = 0
    """The number of functions that use JAX."""
    shown: int = 0
    """The number of those that show something."""
    assumed: int = 0
    """The number of functions that are shown with assumed inputs."""


@dataclass(frozen=True, slots=True)
class Output:
    """What user code printed while `path` was being traced."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Refresh:
    """New answers exist for `path`, so everything shown for it is outdated."""

    path: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message for the user, shown once."""

    level: Literal["error", "warning", "info"]
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of long work: `key` is the same from its first event to the one with `done`."""

    key: str
    title: str
    detail: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Consent:
    """A decision that only the user can make.

    The session's owner asks, and passes the answer to `Session.decide`.
    """

    folder: str
    """Its real path, as the question shows it."""
    what: str
    """The host (`ssh://HOST`) or outside interpreter to allow; empty: the folder's code itself."""
    text: str
    """The question, on one line."""
    answers: tuple[str, ...]
    python: str = ""
    """The interpreter outside the folder that is allowed together with the folder's code."""


Event = Status | FileStatus | Output | Refresh | Message | Progress | Consent
