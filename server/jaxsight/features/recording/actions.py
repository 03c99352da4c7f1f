"""*Run until seen* in an editor: its lenses, and the run with the Python of the project."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxsight.features.model import Lens
from jaxsight.features.recording.programs import (
    ChosenProgram,
    Key,
    files_reached,
    functions_of,
    is_main,
    program_of,
    recordable,
)
from jaxsight.features.recording.until_called import (
    TIME_LIMIT,
    Run,
    RunCoverage,
    RunOutcome,
    run_until_called,
)
from jaxsight.queries.engine import Engine
from jaxsight.queries.long_work import RunningTasks
from jaxsight.recording import running
from jaxsight.recording.observing.functions import is_test
from jaxsight.recording.running import StartedProgram
from jaxsight.source.text import Position, Range
from jaxsight.text import units
from jaxsight.workers.own_python import tracer_environment

RUN_UNTIL_SEEN = "jaxsight.runUntilSeen"

_REMEMBERED = 10.0
"""Seconds for which it is known which program calls the functions of a file: menus ask often."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What would run for a file, before the user has agreed."""

    path: str
    root: str
    program: ChosenProgram
    wanted: tuple[Key, ...]

    @property
    def prompt(self) -> str:
        """The question whether it may run."""
        count = units.count(len(self.wanted), "function")
        return f"Run `{self.program.title}` in {self.root} until it has called {count}?"


class RecordingRuns:
    """Runs programs of the user's for one session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._programs: dict[tuple[str, str], tuple[float, ChosenProgram | None]] = {}
        self._running = RunningTasks()

    async def lenses(self, path: str) -> list[Lens]:
        """Return the lenses of a file with functions that nothing has inputs for."""
        document = await self._engine.documents.read(path)
        if document is None or not self._engine.projects.of(path).settings.code_lens:
            return []
        is_tests = is_test(Path(path).name)
        subjects = self._engine.documents.subjects(document)
        having = {s.name for s in subjects if any(not each.assumed for each in s.examples.sets)}
        count = sum(
            not function.refused and function.qualname not in having
            for _, function in recordable(document.module)
        )
        if not is_tests and not count:
            return []
        if (program := await self._program_of(path)) is None:
            return []
        until = f"{units.count(count, 'function')} {'are' if count > 1 else 'is'} seen"
        if is_tests:
            project = self._engine.projects.of(path)
            reached = await asyncio.to_thread(_wanted, path, project.root, program)
            keys = ((str(Path(project.root, file)), name) for file, name in reached)
            if all(key in project.outside.observed for key in keys):
                return []
            until = "the functions it tests are seen"
        title = f"▶ run {program.title} until {until}"
        mains = (chunk.first_line for chunk in document.module.chunks if is_main(chunk))
        lines = (Position(line, 0) for line in dict.fromkeys((0, *mains)))
        return [Lens(Range(line, line), title, RUN_UNTIL_SEEN, (path,)) for line in lines]

    async def plan(self, path: str) -> RunPlan:
        """Return what would run for a file.

        Raises:
            LookupError: nothing can; the message says why.
        """
        project = self._engine.projects.of(path)
        if project.held_back:
            project.ask_consent()
            raise LookupError(project.held_back)
        if project.interpreter is None:
            raise LookupError(project.problem)
        name = Path(path).name
        if (program := await self._program_of(path)) is None:
            raise LookupError(f"no script, test or notebook calls the functions of {name}")
        if not (wanted := await asyncio.to_thread(_wanted, path, project.root, program)):
            raise LookupError(f"no function of {name} uses JAX and takes arguments")
        return RunPlan(path, project.root, program, wanted)

    async def run(
        self, plan: RunPlan, report: Callable[[RunCoverage], None], stop: asyncio.Event
    ) -> RunOutcome:
        """Run a program until functions are seen, as the user agreed.

        Raises:
            LookupError: it does not start.
        """
        project = self._engine.projects.of(plan.path)
        if project.held_back or project.interpreter is None:
            raise LookupError(project.held_back or project.problem)
        python = project.interpreter.path
        root = Path(await asyncio.to_thread(os.path.realpath, plan.root))
        run = Run(
            running.with_python(["python", *plan.program.arguments], python),
            Path(plan.root),
            tracer_environment(python, os.environ, project.variables),
            root,
            plan.wanted,
            tests=any(is_test(file.rpartition("/")[2]) for file, _ in plan.wanted),
        )
        with self._running.current():
            try:
                return await run_until_called(run, report, limit=TIME_LIMIT, stop=stop)
            except OSError as error:
                raise LookupError(f"{plan.program.title} cannot be run: {error}") from error

    async def aclose(self) -> None:
        """End what is running."""
        await self._running.aclose()

    async def _program_of(self, path: str) -> ChosenProgram | None:
        root = self._engine.projects.of(path).root
        known = self._programs.get((path, root))
        if known is None or time.monotonic() - known[0] > _REMEMBERED:
            found = await asyncio.to_thread(program_of, Path(path), Path(root))
            known = self._programs[path, root] = time.monotonic(), found
        return known[1]


def _wanted(path: str, root: str, program: ChosenProgram) -> tuple[Key, ...]:
    """Return the functions that a program is run for: those of a file, or of what it imports."""
    top, own = Path(root), Path(path)
    files = [own]
    if is_test(own.name) or (own == program.file and not functions_of(top, files)):
        files = files_reached(StartedProgram((program.file,), program.is_tests), top)
    return functions_of(top, files)
