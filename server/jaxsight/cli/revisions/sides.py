"""Compile the functions of one side: of the working tree, or of a revision."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from jaxsight.cli.checking.file_check import (
    FAILED,
    SYNTAX,
    UNREADABLE,
    Budget,
    CheckOptions,
    check_file,
)
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.checking.unchanged import UnchangedFiles
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.output.reports.reported import CheckResult
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.cli.sources.texts import SourceFile
from jaxsight.features.locked.functions import LockableFunction
from jaxsight.projects.sources import Sources
from jaxsight.tracer.isolation.code_origins import INSTALLED

_BROKEN = frozenset({SYNTAX, UNREADABLE, FAILED})

ProgramKey = tuple[str, str, str]
"""A file relative to the repository, with `/`; a function; a target."""


@dataclass(slots=True)
class ProgramSide:
    """What the functions with written inputs compile to on one side."""

    top: Path
    """The folder that files are named relative to."""
    functions: dict[ProgramKey, LockableFunction] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """Files that cannot be read or parsed, and why."""
    mixed: dict[str, str] = field(default_factory=dict)
    """Files that import modules of the other side, and one of these."""
    python: str = ""

    def name(self, path: str) -> str:
        """Return the name of a file on both sides."""
        return PurePath(os.path.relpath(os.path.realpath(path), self.top)).as_posix()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that functions were compiled for."""
        names = (function.section.target_name for function in self.functions.values())
        return tuple(dict.fromkeys(filter(None, names)))


@dataclass(slots=True)
class _ChosenTargets(LockFiles):
    """Targets that were chosen; without them, those of locks."""

    chosen: tuple[str, ...] = ()

    def targets(self, path: str) -> tuple[str, ...]:
        return self.chosen or LockFiles.targets(self, path)


class _OneSide(UnchangedFiles):
    """Stored results, without those of files that import modules of the other side."""

    def __init__(self, run: CommandRun, locks: LockFiles, side: ProgramSide, other: Path) -> None:
        super().__init__(run, with_fixes=False, may_read=True, locks=locks)
        self._side, self._other = side, other

    async def store(
        self, path: str, text: str, cells: Cells, result: CheckResult, sources: Sources
    ) -> None:
        foreign = next(filter(None, map(self._foreign, sources.files)), None)
        if foreign is not None:
            self._side.mixed[self._side.name(path)] = foreign
        else:
            await super().store(path, text, cells, result, sources)

    def _foreign(self, file: str) -> str | None:
        """Return the name of a file in the other side; packages installed below it do not count."""
        real = Path(os.path.realpath(file))
        is_own = not real.is_relative_to(self._other) or not INSTALLED.isdisjoint(real.parts)
        return None if is_own else str(real.relative_to(self._other))


async def compiled_side(
    run: CommandRun,
    files: Sequence[SourceFile],
    targets: Sequence[str],
    top: Path,
    other: Path | None,
) -> ProgramSide:
    """Return what the functions of files compile to.

    Args:
        run: the run.
        files: the files.
        targets: the targets to compile for; by default those of locks, else the project's.
        top: the folder that files are named relative to.
        other: the top folder of the other side, whose modules an editable install may bring in.

    Raises:
        CommandError: no tracer starts, or there is no such target.
    """
    side = ProgramSide(top)
    locks = _ChosenTargets(run.session.engine.projects, chosen=tuple(targets))
    options = CheckOptions(Budget(0.0, len(files)), locks=locks)
    unchanged = _OneSide(run, locks, side, other if other is not None else top / ".git")
    for number, file in enumerate(files, 1):
        run.show_step(f"{number}/{len(files)} {file.path.name}")
        result = await check_file(run, file, options, unchanged)
        for reported in result.reported:
            if reported.finding.code in _BROKEN:
                side.broken[side.name(reported.path)] = reported.finding.message
        for locked in result.locked:
            name = side.name(locked.path)
            for function in locked.functions:
                side.functions[name, function.name, function.section.target] = function
        if not side.python and result.locked:
            side.python = run.python_path(file.path)
    return side
