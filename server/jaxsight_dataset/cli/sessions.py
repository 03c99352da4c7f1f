"""Sessions of jaxsight's own that look at files of datasets, for the CPU."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Trust


@asynccontextmanager
async def session_in(folder: str, python: str, **settings: object) -> AsyncIterator[Session]:
    """Provide a session that runs the code of a folder, with the rights of the user.

    Args:
        folder: it is trusted.
        python: an interpreter that has JAX.
        settings: others than these.
    """
    hints = {"kernels": False, "barriers": False}
    session = Session(Projects(Trust(trusted=[folder], terminal=True)))
    try:
        session.configure(
            [folder], {"python": python, "target": "cpu", "inlayHints": hints, **settings}
        )
        yield session
    finally:
        await session.aclose()


def drop_events(session: Session) -> None:
    """Drop what a session tells an editor."""
    while not session.events.empty():
        session.events.get_nowait()
