"""Give the call of a function as many simulated devices as it asks for.

JAX allows to set their number only before it uses any, so that the process starts again.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.wire.messages.requests import Trace
from jaxsight_repro.capturing import case

VARIABLE = "JAX_NUM_CPU_DEVICES"


@dataclass(frozen=True, slots=True)
class Restarting:
    """How the process starts again: as it was started.

    Attributes:
        case: the folder of the case.
        folder: the current folder.
        environment: the variables.
    """

    case: Path
    folder: Path = field(default_factory=Path.cwd)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def demanded(self, error: BaseException, request: Trace, text: str) -> None:
        """Start again if a call failed for want of devices; return if it has another reason.

        Args:
            error: what the file, its example inputs or the function raised.
            request: the function.
            text: the text of the file.
        """
        from jaxsight.tracer.execution import device_demand

        if isinstance(error, device_demand.MoreDevices):
            self._start(error.demand.count)
        elif isinstance(error, Exception):
            demand = device_demand.wanted(error, [text], request.devices)
            if demand is not None:
                self._start(demand.count)

    def _start(self, count: int) -> None:
        """Replace this process by one with more devices, which runs the file anew."""
        sys.stdout.flush()
        sys.stderr.flush()
        shutil.rmtree(self.case / case.PROGRAMS, ignore_errors=True)
        os.chdir(self.folder)
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, {**self.environment, VARIABLE: str(count)})


def use_target(request: Trace) -> None:
    """Set the number of devices of the target, before JAX is imported."""
    if request.devices > 1:
        os.environ[VARIABLE] = str(request.devices)
