"""Read what the processes of a run logged (`recording/programs/`)."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight import __version__
from jaxsight.files.appended import appended
from jaxsight.recording import RUN, running
from jaxsight.recording.programs import ENDING, LARGEST
from jaxsight.recording.programs.record import RunProgram
from jaxsight.wire.frames import WireError, load


@dataclass(slots=True)
class RunProcess:
    """A process of a run, and what it compiled in order."""

    pid: int
    parent: int
    command: tuple[str, ...]
    began: float
    ranks: Mapping[str, str]
    """Variables with which launchers name a process."""
    jax: str
    python: str
    ended: float | None = None
    """When Python ended it; `None` for processes that were killed, crashed or left at once."""
    index: int | None = None
    """`jax.process_index()`, once a program was compiled."""
    programs: list[RunProgram] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors of ours."""


@dataclass(slots=True)
class RunSummary:
    """The run itself."""

    command: tuple[str, ...]
    status: int
    began: float
    seconds: float
    version: str
    """That of jaxsight."""


def read(folder: Path) -> list[RunProcess]:
    """Return the processes that imported JAX, in the order in which they did."""
    processes: list[RunProcess] = []
    for lines in appended(folder, ENDING, LARGEST):
        process: RunProcess | None = None
        for line in lines:
            match line:
                case {
                    "process": {
                        "pid": int(pid),
                        "parent": int(parent),
                        "command": [*command],
                        "began": float(began),
                        "ranks": dict(ranks),
                        "jax": str(jax),
                        "python": str(python),
                    }
                }:
                    words, variables = (
                        tuple(map(str, command)),
                        {k: str(v) for k, v in ranks.items()},
                    )
                    process = RunProcess(pid, parent, words, began, variables, jax, python)
                    processes.append(process)
                case _ if process is None:
                    continue
                case {"program": str(program)}:
                    with contextlib.suppress(WireError):
                        process.programs.append(load(RunProgram, program.encode()))
                    if isinstance(index := line.get("index"), int):
                        process.index = index
                case {"end": float(ended)}:
                    process.ended = ended
                case {"error": str(error)}:
                    process.errors.append(error)
    return sorted(processes, key=lambda process: process.began)


# Run the user's program, and read what its processes compiled.


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
