"""Run a file in a fresh Python process, with limits, and observe how it fails.

The process cannot import jaxsight, unless the file asks it to compile for a target. It runs below
the watchdog of tracers, so nothing that it starts survives it; its temporary files are removed when
it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading
from jaxsight.workers.own_python import booted
from jaxsight.workers.watchdog.watched import Ending, watched
from jaxsight_repro.failures import (
    EXCEPTION,
    FINISHED,
    HANG,
    MEMORY,
    PROCESSES,
    RunFailure,
    failure_of_exit,
)

OBSERVER = '''\
import sys
sys.path = [*filter(None, sys.path)]  # not yet the folder of the file: it may have a json.py
before = set(sys.modules)
import json, os, pathlib, runpy, traceback

class _NoJaxsight:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith("jaxsight"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

boot = os.environ.pop("JAXSIGHT_BOOT", "")
if boot:
    names = ("jaxsight", "jaxsight_source", "jaxsight_repro")
    runpy.run_path(boot)["make_importable"](pathlib.Path(boot).parents[1], *names)
else:
    sys.meta_path.insert(0, _NoJaxsight())
report, file, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = file
folder = os.path.dirname(os.path.abspath(file))
sys.path.insert(0, folder)
for name in set(sys.modules) - before:  # which the file may import
    own = os.path.join(folder, name.partition(".")[0])
    if os.path.exists(own + ".py") or os.path.isdir(own):
        del sys.modules[name]

def frame_of(error):
    """The innermost function, as `module:function`, if it is of JAX."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = frame.f_globals.get("__name__") or ""
        ours = module.partition(".")[0] in ("jax", "jaxlib")
        return f"{module}:{frame.f_code.co_name}" if ours else ""
    return ""

try:
    runpy.run_path(file, run_name="__main__")
except SystemExit as error:
    if error.code not in (None, 0):
        with open(report, "w") as out:
            json.dump(["SystemExit", str(error.code), ""], out)
    raise
except BaseException as error:
    cls = type(error)
    name = cls.__qualname__
    if cls.__module__ not in ("builtins", "__main__"):
        name = f"{cls.__module__}.{name}"
    with open(report, "w") as out:
        json.dump([name, str(error), frame_of(error)], out)
    raise
'''

_ASKS_JAXSIGHT = b"\n    import jaxsight\n"

DEFAULT_TIMEOUT = 120.0
"""Seconds, as `timeouts.compile`: a compile that takes longer is what `hang` is about."""

DEFAULT_MEMORY = 16 << 30
"""Bytes, chosen: less ends what a large compile needs and calls it a failure, more may make the
machine swap before a leak is stopped."""

MOST_PROCESSES = 64
"""More of them count as the failure `processes`, chosen: fewer end a compile that runs `ptxas`
once per core, more let a fork bomb slow the machine down before it is stopped."""

_MOST_OUTPUT = 1 << 20
"""Bytes of each output that are kept, a choice: the last ones, with the error."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run."""

    failure: RunFailure
    stdout: str
    stderr: str
    code: int
    """The exit status; negative for a signal."""


def run_file(
    python: str,
    file: Path,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    memory: int = DEFAULT_MEMORY,
    environment: Mapping[str, str] | None = None,
) -> FinishedRun:
    """Run a Python file as a script in a fresh process.

    It can import jaxsight if it is a repro whose demonstration does so, see `demonstrations`.

    Args:
        python: the interpreter's path.
        timeout: seconds after which it is killed, and counts as a hang.
        memory: bytes that it and its children may use.
        environment: the variables of the process; by default, this process's.

    Raises:
        OSError: the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-run-") as folder:
        report = Path(folder, "failure.json")
        variables = {**(environment or os.environ), "TMPDIR": folder}
        if _ASKS_JAXSIGHT in reading.data(file):
            variables["JAXSIGHT_BOOT"] = booted("")[0]
        command = [python, "-X", "faulthandler", "-c", OBSERVER, str(report), str(file)]
        ran = run_command(
            command, timeout=timeout, memory=memory, environment=variables, folder=file.parent
        )
        if ran.failure.kind == FINISHED or (ran.failure.kind == EXCEPTION and ran.code > 0):
            with contextlib.suppress(OSError, ValueError):
                name, message, frame = json.loads(report.read_text(encoding="utf-8"))
                failure = RunFailure(EXCEPTION, name, message, frame)
                return FinishedRun(failure, ran.stdout, ran.stderr, ran.code)
        return ran


def run_command(
    command: Sequence[str],
    *,
    timeout: float = DEFAULT_TIMEOUT,
    memory: int = DEFAULT_MEMORY,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> FinishedRun:
    """Run a command below the watchdog; a non-zero exit status is an `exception` without a name.

    Raises:
        OSError: the command cannot be started, or not on this system.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        output = stdout.fileno(), stderr.fileno()

        async def ended() -> tuple[RunFailure, int]:
            async with watched(
                command,
                environment=environment,
                folder=folder,
                limits=(memory, MOST_PROCESSES),
                output=output,
            ) as process:
                try:
                    async with asyncio.timeout(timeout):
                        ending = await process.ended()
                except TimeoutError:
                    return RunFailure(HANG, message=f"within {timeout:g} s"), -int(signal.SIGKILL)
            return failure_of_ending(ending, memory), ending.code

        failure, code = asyncio.run(ended())
        return FinishedRun(failure, _tail(stdout), _tail(stderr), code)


def failure_of_ending(ending: Ending, memory: int) -> RunFailure:
    """Return how a watched process failed, which might use so many bytes."""
    if ending.exceeded == "memory":
        return RunFailure(MEMORY, message=f"of {memory >> 20} MiB")
    return RunFailure(PROCESSES) if ending.exceeded else failure_of_exit(ending.code)


def _tail(file: object) -> str:
    descriptor = file.fileno()  # type: ignore[attr-defined]
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, _MOST_OUTPUT, max(size - _MOST_OUTPUT, 0))
    return data.decode(errors="replace")
