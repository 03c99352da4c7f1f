"""What the engine tells its owner unasked: plain events on one queue, in the order in which they
happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ready", "busy", "failed", "untrusted"]


@dataclass(frozen=True, slots=True)
class Status:
    """How the tracer of one project root is.

    `detail` is one sentence for people; with `failed` it says the way out.
    """

    root: str
    state: State
    detail: str = ""
    python: str = ""
    """The interpreter's path, and in `reason` why it was chosen."""
    reason: str = ""
    jax: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """What user code printed while `path` was being traced."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Refresh:
    """Fresh answers exist for `path`: what was shown before is out of date."""

    path: str


@dataclass(frozen=True, slots=True)
class Message:
    """For a person, once."""

    level: Literal["error", "warning", "info"]
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Long work: the same `key` from its first event to the one with `done`."""

    key: str
    title: str
    detail: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Consent:
    """A decision that only the user can take: whoever owns the session asks, and tells
    `Session.decide` the answer.
    """

    folder: str
    what: str
    """What may be reached from the folder (`ssh://HOST`, an interpreter elsewhere); empty: its code
    may run.
    """
    text: str
    """The question, on one line."""
    answers: tuple[str, ...]
    python: str = ""
    """The interpreter elsewhere that is allowed along with the folder's code."""


Event = Status | Output | Refresh | Message | Progress | Consent
