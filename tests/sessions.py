"""Sessions for tests that are not about a tracer's end."""

from __future__ import annotations

from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Trust


def session_without_spare(trust: Trust | None = None) -> Session:
    """Return a session that keeps no second tracer warm, as those of commands.

    A spare imports JAX once more, whatever a test asks: a second and a half of processor time.
    Tests of edits, of load and of processes that end keep it.
    """
    return Session(Projects(trust, spares=0))
