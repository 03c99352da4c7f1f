"""The processes that extract and reduce a repro, with the Python and the settings of a project."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from jaxsight.features.recording.until_seen import temporary_folder
from jaxsight.projects.project import Project
from jaxsight.workers.compilation import environments
from jaxsight.workers.environment import neutral_folder, tracer_environment
from jaxsight.workers.watchdog.watched import WatchedProcess, watched
from jaxsight_repro.boot_commands import (
    Event,
    Events,
    NoResult,
    emit_command,
    reduce_command,
    run_command,
)
from jaxsight_repro.failures import EXCEPTION, FINISHED, HANG, RunFailure
from jaxsight_repro.running import DEFAULT_MEMORY, MOST_PROCESSES, failure_of_ending
from jaxsight_source.files import reading

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
        async with self._started(command, limits=(DEFAULT_MEMORY, MOST_PROCESSES)) as process:
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

    async def emit(self, case: Path, out: Path, died: RunFailure | None, check: str) -> Event:
        """Write the repro of a case to a file, and return what came of it.

        Raises:
            NoResult: there is nothing to write.
        """
        command = emit_command(self.python, case, out, died, check=check)
        return await self._followed("emit", command, lambda event: None)

    async def reduce(
        self,
        file: Path,
        out: Path,
        text: str,
        check: str,
        on_event: Callable[[Event], None],
        interrupted: asyncio.Event,
    ) -> Event:
        """Reduce a repro, and return what came of it.

        Args:
            file: the repro.
            out: the file to write.
            text: the text of the repro.
            check: what makes a program interesting.
            on_event: called with each step.
            interrupted: ends the reduction when it is set; the smallest program so far is kept.

        Raises:
            NoResult: it cannot be reduced.
        """
        command = reduce_command(self.python, file, out, text, check=check)
        return await self._followed("reduce", command, on_event, interrupted)

    async def _followed(
        self,
        name: str,
        command: Sequence[str],
        on_event: Callable[[Event], None],
        interrupted: asyncio.Event | None = None,
    ) -> Event:
        events = Events(name, on_event)

        async def interrupt(process: WatchedProcess) -> None:
            if interrupted is not None:
                await interrupted.wait()
                process.interrupt()

        # Its temporary files are removed even if it is killed.
        async with (
            temporary_folder("jaxsight-repro-") as folder,
            self._started(command, {"TMPDIR": str(folder)}) as process,
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
        variables: Mapping[str, str] = MappingProxyType({}),
        limits: tuple[int, int] | None = None,
    ) -> AsyncIterator[WatchedProcess]:
        environment = {**self.environment, **variables}
        try:
            async with watched(
                command, environment=environment, folder=self.folder, limits=limits
            ) as process:
                yield process
        except OSError as error:
            raise NoResult(f"no process can be started: {error}") from error
