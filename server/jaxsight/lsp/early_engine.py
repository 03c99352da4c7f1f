"""Start the engine before the client gets the answer to `initialize`.

Tracers start while the server still imports its own modules.
Of the engine, this module imports only `projects`; the rest takes as long again to import, and is
imported after `initialize` has been answered.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.projects.projects import Projects
from jaxsight.trust import Trust

if TYPE_CHECKING:
    from jaxsight.lsp.configuration import Configuration
    from jaxsight.session import Session


class EngineAhead:
    """An engine whose tracers start before the rest of it is imported."""

    def __init__(self, configuration: Configuration, trust: str = "") -> None:
        """Start tracers; `trust` is the policy that the server was started with, if any."""
        self._projects = Projects(Trust.of_user(trust))
        self._session: Session | None = None
        configuration.apply(self._projects)
        self._projects.start_ahead()

    def session(self) -> Session:
        """Import the rest of the engine, and return it with the tracers that have been started."""
        with cached_bytecode(file_for("session"), dataclasses):
            from jaxsight.session import Session

        self._session = Session(self._projects)
        return self._session

    async def aclose(self) -> None:
        """Stop everything that was started."""
        if self._session is not None:
            await self._session.aclose()
        else:
            await self._projects.aclose()
