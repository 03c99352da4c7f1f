"""Compile the functions of one side: of the working tree, or of a revision."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from jaxsight.cli.checking.file_check import (
    FAILED,
    INPUTS_TIME,
    SYNTAX,
    UNREADABLE,
    Budget,
    CheckOptions,
    check_file,
)
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.checking.unchanged import UnchangedFiles
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.sources.arguments import SourceFile, python_files
from jaxsight.features.findings.locked import LockableFunction

_BROKEN = frozenset({SYNTAX, UNREADABLE, FAILED})

ProgramKey = tuple[str, str, str]
"""A file relative to the repository, with `/`; a function; a target."""


@dataclass(slots=True)
class ProgramSide:
    """What the functions with known inputs compile to on one side."""

    top: Path
    """The folder that files are named relative to."""
    functions: dict[ProgramKey, LockableFunction] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """Files that cannot be read or parsed, and why."""
    python: str = ""

    def name(self, path: str) -> str:
        """Return the name of a file on both sides."""
        return PurePath(os.path.relpath(os.path.realpath(path), self.top)).as_posix()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that functions were compiled for."""
        names = (function.section.target_name for function in self.functions.values())
        return tuple(dict.fromkeys(filter(None, names)))


def python_texts(paths: Sequence[Path]) -> list[SourceFile]:
    """Return the Python files that paths name; lines of notebooks are those of cells.

    Raises:
        CommandError: a path does not exist.
    """
    return [SourceFile(path, is_argument=path in paths) for path in python_files(paths)]


async def compiled_side(
    run: CommandRun,
    files: Sequence[SourceFile],
    targets: Sequence[str],
    top: Path,
) -> ProgramSide:
    """Return what the functions of files compile to.

    Args:
        run: the run.
        files: the files.
        targets: the targets to compile for; by default those of locks, else the project's.
        top: the folder that files are named relative to.

    Raises:
        CommandError: no tracer starts, or there is no such target.
    """
    side = ProgramSide(top)
    locks = LockFiles(run.session.engine.projects, chosen=targets)
    options = CheckOptions(Budget(INPUTS_TIME, len(files)), locks=locks)
    unchanged = UnchangedFiles(run, with_fixes=False, may_read=True, locks=locks)
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
