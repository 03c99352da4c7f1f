"""Give the call of a function as many simulated devices as it asks for.

JAX allows to set their number only before it uses any, so that the process starts again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from jaxsight.wire.messages.requests import Trace
from jaxsight_repro.capturing import case

VARIABLE = "JAX_NUM_CPU_DEVICES"


Restart = Callable[[BaseException, str], None]
"""Starts again if a call failed for want of devices; returns if it has another reason.

It takes what the file, its example inputs or the function raised, and the text of the file.
"""


def restarting(folder: Path, request: Trace) -> Restart:
    """Return how this process starts again: as it was started, for the case in a folder."""
    working, environment = Path.cwd(), dict(os.environ)

    def start(count: int) -> None:
        """Replace this process by one with more devices, which runs the file anew."""
        sys.stdout.flush()
        sys.stderr.flush()
        shutil.rmtree(folder / case.PROGRAMS, ignore_errors=True)
        os.chdir(working)
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, {**environment, VARIABLE: str(count)})

    def restart(error: BaseException, text: str) -> None:
        from jaxsight.tracer.execution import device_demand

        if isinstance(error, device_demand.MoreDevices):
            start(error.demand.count)
        elif isinstance(error, Exception):
            demand = device_demand.wanted(error, [text], request.devices)
            if demand is not None:
                start(demand.count)

    return restart


def use_target(request: Trace) -> None:
    """Set the number of devices of the target, before JAX is imported."""
    if request.devices > 1:
        os.environ[VARIABLE] = str(request.devices)
