"""The engine, begun before the client is answered: tracers start while the server still reads its
own modules.

Of the engine only `projects` is imported here; the rest, which takes as long again, waits until
`initialize` is answered.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from jaxsight.engine.projects import Projects
from jaxsight.engine.trust import Trust
from jaxsight.lsp.bytecode import file_for, kept

if TYPE_CHECKING:
    from jaxsight.engine.session import Session
    from jaxsight.lsp.configuration import Configuration


class EngineAhead:
    """See the module's docstring."""

    def __init__(self, configuration: Configuration, trust: str = "") -> None:
        """`trust`: the policy that the server was started with, if any."""
        self._projects = Projects(Trust.of_user(trust))
        self._session: Session | None = None
        configuration.apply(self._projects)
        self._projects.start_ahead()

    def session(self) -> Session:
        """The whole engine, on the tracers that have been started."""
        with kept(file_for("session"), dataclasses):
            from jaxsight.engine.session import Session

        self._session = Session(self._projects)
        return self._session

    async def aclose(self) -> None:
        """End everything that was begun."""
        if self._session is not None:
            await self._session.aclose()
        else:
            await self._projects.aclose()
