"""Run the user's program, and read what its processes compiled."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxsight import __version__
from jaxsight.recording import RUN, running
from jaxsight.runs.collected import RunProcess, read
from jaxsight.runs.page.sections import RunSummary


def collect(
    command: Sequence[str], environment: Mapping[str, str], shown: Sequence[str] = ()
) -> tuple[RunSummary, list[RunProcess]]:
    """Run a command to its end, and return what its processes compiled.

    Args:
        command: the program with its arguments.
        environment: the program's variables.
        shown: the command as the user wrote it, if it is another.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-run-") as name:
        variables = running.observed_environment(environment, {RUN: name})
        began, clock = time.time(), time.monotonic()
        status = running.run(command, variables, lambda: None)
        seconds = time.monotonic() - clock
        summary = RunSummary(tuple(shown or command), status, began, seconds, __version__)
        return summary, read(Path(name))
