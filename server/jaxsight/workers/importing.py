"""Import a whole file in a process of its own, which ends together with all that it started."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace

from jaxsight.files import reading
from jaxsight.wire.messages.replies import Failed, Imported
from jaxsight.wire.messages.requests import Import
from jaxsight.workers.limits import Limits
from jaxsight.workers.output import nowhere
from jaxsight.workers.own_python import neutral_folder, tracer_command, tracer_environment
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.results import Death, Died, Reason

GRACE = 2.0
"""Seconds past the deadline in which a process has to print its traceback and exit, a choice:
`faulthandler` needs milliseconds, a machine that swaps more."""

_ENDED_ITSELF = 1
"""The exit status of a process that exceeded its deadline (`faulthandler`)."""


async def import_whole(
    python: str,
    request: Import,
    *,
    limits: Limits,
    variables: Mapping[str, str],
) -> Imported | Failed | Died:
    """Run an `Import` with the Python executable `python`; output of the file is dropped.

    Args:
        variables: the user's settings of environment variables, which take precedence.
    """
    process = TracerProcess(
        [*tracer_command(python), "--import"],
        environment=tracer_environment(python, os.environ, variables),
        folder=request.root if reading.is_folder(request.root) else neutral_folder(),
        limits=limits,
        locate=nowhere,
        on_output=lambda *_: None,
        confined_for=request.root,
    )
    try:
        if await process.ready is None:
            return Died(request.id, "", await process.death)
        process.busy()
        process.send(request)
        return await _reply(process, request)
    finally:
        await process.aclose()


async def _reply(process: TracerProcess, request: Import) -> Imported | Failed | Died:
    begun = time.monotonic()
    try:
        async with asyncio.timeout(request.deadline + GRACE):
            message = await process.receive()
            if isinstance(message, Imported | Failed):
                return message
            death = await process.death
    except TimeoutError:
        death = Death(Reason.TIMEOUT, limit=request.deadline)
    # Before the deadline, the file itself exited with this status.
    late = time.monotonic() - begun >= request.deadline
    if late and (death.reason, death.code) == (Reason.EXITED, _ENDED_ITSELF):
        death = replace(death, reason=Reason.TIMEOUT, limit=request.deadline)
    return Died(request.id, "execute", death)


def line_of(death: Death, file: str) -> int | None:
    """Return the line (from 1) at which a process stopped at its deadline, if it is known."""
    line_numbers = re.findall(
        rf'File "{re.escape(file)}", line (\d+) in <module>', death.last_words
    )
    return int(line_numbers[-1]) if line_numbers else None
