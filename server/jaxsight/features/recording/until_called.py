"""Run a program until each of some functions was called with arrays, and end it then.

What its processes log is looked at a few times a second. The program is ended with all that it
started, by force: it cannot catch that, and it saves nothing. Its temporary files are removed
with it. A program that ends because a module is not installed is started again without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jaxsight.features.recording.programs import Key
from jaxsight.recording import MISSING, running
from jaxsight.recording.merging import Merger, Recording
from jaxsight.workers.watchdog.watched import WatchedProcess, watched

# Temporary folders of work on an event loop, which are removed whatever becomes of it.


@contextlib.asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """Yield a folder that is removed in the end, also if the task is cancelled."""
    folder = await asyncio.to_thread(
        tempfile.TemporaryDirectory, prefix=prefix, ignore_cleanup_errors=True
    )
    try:
        yield Path(folder.name)
    finally:
        await asyncio.shield(asyncio.to_thread(folder.cleanup))


TIME_LIMIT = 120.0
"""Seconds after which a program is ended that has not called all functions, a choice: less ends
those that first load data, more runs on for functions that are never called."""
_PAUSE = 0.1
"""Seconds between two looks at what was logged, a choice: it is not felt."""
_MERGED_EVERY = 2.0
"""Seconds between two writes of what was recorded, a choice: shapes appear during the run."""
_MOST_REPLACED = 8
"""Modules that are not installed, after which a program is not started again: a choice."""
_OUTPUT = (asyncio.subprocess.PIPE, asyncio.subprocess.PIPE)

Ending = Literal["seen", "ended", "time limit", "stopped"]
"""Why a run is over: all functions were seen, the program ended by itself, its time was up, or
somebody stopped it."""

_QUIET = {"MPLBACKEND": "Agg", "WANDB_MODE": "disabled"}
"""Variables with which a program opens no windows, and reports no run."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program, and the functions that it is run for."""

    command: Sequence[str]
    folder: Path
    """The folder that it is started in."""
    environment: Mapping[str, str]
    root: Path
    """The real path of the folder whose functions are recorded."""
    wanted: tuple[Key, ...]
    tests: bool = False
    """Whether functions in files of tests are recorded, too."""


@dataclass(frozen=True, slots=True)
class RunCoverage:
    """The functions that a run is to reach, by what is known of them."""

    with_arrays: tuple[Key, ...]
    without_arrays: tuple[Key, ...]
    """Called, but not with arrays."""
    missing: tuple[Key, ...]
    """Not called yet."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of a run."""

    ending: Ending
    seen: RunCoverage
    recording: Recording
    replaced: tuple[str, ...] = ()
    """Modules that are not installed, and that did nothing."""
    errors: str = ""
    """The end of what the program wrote to standard error, if that was not passed on."""


async def run_until_called(
    run: Run,
    report: Callable[[RunCoverage], None],
    *,
    limit: float = TIME_LIMIT,
    stop: asyncio.Event | None = None,
    output: tuple[int | None, int | None] = _OUTPUT,
) -> RunOutcome:
    """Run a program until all functions were seen.

    Args:
        run: the program.
        report: called whenever more functions were seen, and at the start.
        limit: seconds after which it is ended.
        stop: ends it when it is set.
        output: where its standard output and its standard error go, as `watched` has it.

    Raises:
        OSError: it cannot be started.
    """
    async with temporary_folder("jaxsight-") as folder:
        logs, temporary = folder / "calls", folder / "tmp"
        for path in (logs, temporary):
            path.mkdir()
        merger = Merger(logs, run.root)
        given = {**_QUIET, **run.environment, "TMPDIR": str(temporary)}
        environment = running.recorded_environment(given, logs, run.root, tests=run.tests)
        end = time.monotonic() + limit
        replaced: tuple[str, ...] = ()
        while True:
            environment[MISSING] = ",".join(replaced)
            async with watched(
                run.command, environment=environment, folder=str(run.folder), output=output
            ) as process:
                ending, status = await _followed(run, process, merger, report, end, stop)
            await asyncio.to_thread(merger.read)
            missing = [name for name in merger.logged.missing if name not in replaced]
            is_failed = ending == "ended" and status and _seen(run, merger).missing
            if not is_failed or not missing or len(replaced) == _MOST_REPLACED:
                break
            replaced = (*replaced, missing[-1])
        await asyncio.to_thread(merger.write)
        seen = _seen(run, merger)
        return RunOutcome(ending, seen, merger.result(status), replaced, process.errors)


async def _followed(
    run: Run,
    process: WatchedProcess,
    merger: Merger,
    report: Callable[[RunCoverage], None],
    end_of_time: float,
    stop: asyncio.Event | None,
) -> tuple[Ending, int]:
    """Look at what a program logs until it is to be ended; return why, and its exit status."""
    merged = time.monotonic()
    seen = _seen(run, merger)
    report(seen)
    end = asyncio.ensure_future(process.ended())
    try:
        while True:
            await asyncio.wait([end], timeout=_PAUSE)
            if await asyncio.to_thread(merger.read) and (now := _seen(run, merger)) != seen:
                seen = now
                report(seen)
                if time.monotonic() - merged > _MERGED_EVERY:
                    await asyncio.to_thread(merger.write)
                    merged = time.monotonic()
            if not seen.missing:
                return "seen", 0
            if end.done():
                code = (await end).code
                return "ended", 128 - code if code < 0 else code
            if stop is not None and stop.is_set():
                return "stopped", 0
            if time.monotonic() > end_of_time:
                return "time limit", 0
    finally:
        end.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await end


def _seen(run: Run, merger: Merger) -> RunCoverage:
    called = {(call.file, call.function) for call in merger.logged.calls}
    plain = merger.logged.plain
    return RunCoverage(
        tuple(key for key in run.wanted if key in called),
        tuple(key for key in run.wanted if key in plain and key not in called),
        tuple(key for key in run.wanted if key not in called and key not in plain),
    )
