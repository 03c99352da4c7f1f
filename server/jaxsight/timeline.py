"""Marks of when each stage of an answer was reached, in all processes on one time axis.

They are off, and cost nothing, unless the environment variable names a file.
Each mark then appends a line to it: the clock in nanoseconds, the process, and the stage.
`python -m tools.perf.waterfall` draws them.
On Linux, `time.perf_counter` is `CLOCK_MONOTONIC`, one clock for all processes.
"""

from __future__ import annotations

import os
import time

VARIABLE = "JAXSIGHT_TIMELINE"

_file = os.environ.get(VARIABLE, "")

if _file:
    # Opened before user code runs. Each mark is written at once: a process may be killed any time.
    _descriptor = os.open(_file, os.O_WRONLY | os.O_APPEND)
    _process = os.getpid()

    def mark(stage: str, about: object = None) -> None:
        """Record that a stage was reached; `about` adds its class, such as that of a message."""
        name = stage if about is None else f"{stage} {type(about).__name__}"
        os.write(_descriptor, f"{time.perf_counter_ns()} {_process} {name}\n".encode())

else:

    def mark(stage: str, about: object = None) -> None:
        """Do nothing."""
