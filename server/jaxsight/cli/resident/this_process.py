"""How this process runs commands: one, or those of a resident server."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxsight.cli.resident.kept_sessions import KeptSessions


@dataclass(slots=True)
class ThisProcess:
    """What a server sets for all commands of its process."""

    run: Callable[[Coroutine[object, None, int]], int] | None = None
    """Runs a command in an event loop that stays."""
    sessions: KeptSessions | None = None


THIS_PROCESS = ThisProcess()
