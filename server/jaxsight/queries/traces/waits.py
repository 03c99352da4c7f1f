"""What a question waits for, since when, and how to stop that: shown for whatever takes long."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import PurePath

from jaxsight.projects.project import Project
from jaxsight.queries.traces.query import Unasked
from jaxsight.workers.request_queue import CurrentStep, Haste
from jaxsight.workers.results import HOW_TO_RUN_AGAIN

_LONG_STATEMENT = 1.0
_LONG = 10.0
"""Seconds after which something is waited for long, a choice: starts, imports and traces take a
while on a busy machine; other statements do not."""
_IMPORT = re.compile(r"(from|import)\s")


@dataclass(frozen=True, slots=True)
class Waits(Unasked):
    """What a function waits for that is not traced yet: `reason` says what, and since when."""

    how: str = ""
    """How to stop that, as an instruction; empty if it is jaxsight's own start."""
    step: CurrentStep | None = None

    def is_long(self, waited: float) -> bool:
        """Return whether that takes so long that it is said, after some seconds of waiting."""
        if self.step is None:
            return waited >= _LONG
        is_quick = self.step.statement and not _IMPORT.match(self.step.statement)
        return self.step.seconds >= (_LONG_STATEMENT if is_quick else _LONG)


def waits(project: Project, path: str, haste: Haste, since: float) -> Waits:
    """Return what a request about a file waits for.

    Args:
        project: the project of the file.
        path: the file.
        haste: the priority of the request, which identifies it.
        since: when it was asked, in seconds since the epoch.
    """
    step = project.step(haste)
    if step is None:
        return Waits(f"waiting for {project.starts or 'the tracer'}, begun at {_clock(since)}")
    where = f" of {PurePath(step.file).name}" if step.file and step.file != path else ""
    limit = step.stage if step.stage in ("execute", "inputs") else "trace"
    statement = step.statement.replace("`", "'")  # it stands in backticks
    what = {
        "execute": f"`{statement}`" if statement else f"the module of `{step.title}`",
        "inputs": f"the example inputs of `{step.title}`",
        "trace": f"the trace of `{step.title}`",
    }[limit]
    ends = f"it ends after {getattr(project.settings.timeouts, limit):g} s (`timeouts.{limit}`)"
    began = _clock(time.time() - step.seconds)
    return Waits(
        f"waiting for {what}{where}, begun at {began}", f"{HOW_TO_RUN_AGAIN}; {ends}", step
    )


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))
