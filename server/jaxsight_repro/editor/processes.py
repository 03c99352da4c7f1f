"""The processes that extract and reduce a repro, with the Python and the settings of a project."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.features.recording.until_called import temporary_folder
from jaxsight.files import reading
from jaxsight.projects.project import Project
from jaxsight.workers.compilation import environments
from jaxsight.workers.own_python import neutral_folder, tracer_environment
from jaxsight.workers.watchdog.watched import WatchedProcess, watched
from jaxsight_repro.failures import EXCEPTION, FINISHED, HANG, RunFailure
from jaxsight_repro.processes import Event, Events, NoResult, run_command
from jaxsight_repro.running import DEFAULT_MEMORY, MOST_PROCESSES, failure_of_ending

CALL_LIMIT = 120.0
"""Seconds after which a call counts as a hang: those of `timeouts.compile`, as it compiles."""

_GRACE = 5.0
"""Seconds that a program has to end after an interruption, a choice: it writes its case."""


@dataclass(frozen=True, slots=True)
class Processes:
    """How processes of `repro` are started for a project whose code may run."""

    python: str
    environment: dict[str, str]
    folder: str

    @staticmethod
    def of(project: Project) -> Processes:
        """Return how they are started for a project.

        Raises:
            LookupError: its code may not run, or there is no Python; the message says which.
        """
        if project.held_back:
            project.ask_consent()
            raise LookupError(project.held_back)
        if project.interpreter is None:
            raise LookupError(project.problem)
        python = project.interpreter.path
        environment = {
            **tracer_environment(python, os.environ, project.variables),
            **environments.located(),
        }
        folder = project.root if reading.is_folder(project.root) else neutral_folder()
        return Processes(python, environment, folder)

    async def call(self, case: Path, request: Path, text: Path, check: str) -> RunFailure | None:
        """Call a function under capture; return how the process died if it did not end by itself.

        Raises:
            NoResult: no process can be started.
        """
        command = run_command(self.python, "function", case, [str(request), str(text)], check)
        limits = DEFAULT_MEMORY, MOST_PROCESSES
        async with self._started(command, self.environment, limits) as process:
            try:
                async with asyncio.timeout(CALL_LIMIT):
                    ending = await process.ended()
            except TimeoutError:
                process.interrupt()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE):
                        if (await process.ended()).code >= 0:
                            return None
                return RunFailure(HANG, message=f"within {CALL_LIMIT:g} s")
        failure = failure_of_ending(ending, DEFAULT_MEMORY)
        return None if failure.kind in (FINISHED, EXCEPTION) else failure

    async def followed(
        self,
        command: Sequence[str],
        on_event: Callable[[Event], None] = lambda event: None,
        interrupted: asyncio.Event | None = None,
    ) -> Event:
        """Run another process of `start`, and return what its last event says.

        Args:
            command: the process.
            on_event: called with each step.
            interrupted: ends it when it is set; a reduction keeps the smallest program so far.

        Raises:
            NoResult: it has none.
        """
        events = Events(on_event)

        async def interrupt(process: WatchedProcess) -> None:
            if interrupted is not None:
                await interrupted.wait()
                process.interrupt()

        # Its temporary files are removed even if it is killed.
        async with (
            temporary_folder("jaxsight-repro-") as folder,
            self._started(command, {**self.environment, "TMPDIR": str(folder)}) as process,
        ):
            waiting = asyncio.create_task(interrupt(process))
            try:
                await process.ended(events.take)
            finally:
                waiting.cancel()
            return events.result(process.errors)

    @contextlib.asynccontextmanager
    async def _started(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        limits: tuple[int, int] | None = None,
    ) -> AsyncIterator[WatchedProcess]:
        try:
            async with watched(
                command, environment=environment, folder=self.folder, limits=limits
            ) as process:
                yield process
        except OSError as error:
            raise NoResult(f"no process can be started: {error}") from error
