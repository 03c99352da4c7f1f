"""`jaxsight check PATH…`: every function with example inputs, traced; what is wrong, in the format asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jaxsight.cli import baseline as baselines
from jaxsight.cli.calls import recompiled
from jaxsight.cli.errors import FOUND
from jaxsight.cli.fixes import Fixed, fix
from jaxsight.cli.reports import Reported, machine, text
from jaxsight.cli.running import Running, running
from jaxsight.cli.sources import python_files, read_source
from jaxsight.engine.answers import Finding, Severity
from jaxsight.engine.module import Module
from jaxsight.engine.projects import MARKERS, SETTINGS_FILE

SYNTAX = "invalid-syntax"
"""As ruff names it: no rule of ours, so it can neither be selected nor ignored."""


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


async def check(
    paths: Sequence[Path],
    *,
    output: Format,
    select: Sequence[str],
    ignore: Sequence[str],
    python: str | None,
    fixing: bool = False,
    unsafe: bool = False,
    calls: Sequence[str] = (),
    baseline: Path | None = None,
    new_baseline: Path | None = None,
) -> int:
    """Print the findings of all files; the exit status.

    Args:
        fixing: apply what is proved to help, and report what is left.
        unsafe: also what changes signatures, or values that are wrong.
        calls: tests that are run to see what is traced again.
        baseline: findings that are not told of.
        new_baseline: where to write all findings instead of reporting them.

    Raises:
        CommandError: a path does not exist or cannot be read, or no tracer can be had.
    """
    files = list(python_files(paths))
    editor: dict[str, object] = {}
    if select:
        editor["select"] = list(select)
    if ignore:
        editor["ignore"] = list(ignore)
    if python:
        editor["python"] = python
    reported: list[Reported] = []
    functions = 0
    fixed = Fixed() if fixing else None
    async with running([], editor) as run:
        for number, file in enumerate(files, 1):
            run.say(f"{number}/{len(files)} {text.shown_path(str(file))}")
            found, traced = await _check_file(run, file, fixed, unsafe=unsafe)
            reported += found
            functions += traced
        reported += await _settings_problems(run, files)
        if calls:
            interpreter = await run.asked(run.session.interpreter(str(Path.cwd() / "tests")))
            run.say("running the tests")
            reported += await asyncio.to_thread(
                recompiled, interpreter, calls, tuple(select), tuple(ignore)
            )
    if fixed is not None:
        # What is read by machines stays as it is.
        console = Console(highlight=False, soft_wrap=True, stderr=output is not Format.TEXT)
        for line in fixed.lines:
            console.print(line)
        console.print(Text(fixed.summary))
    if new_baseline is not None:
        baselines.write(new_baseline, reported)
        print(f"{_count(len(reported), 'finding')} written to {new_baseline}.")
        return 0
    if baseline is not None:
        reported, gone = baselines.new(baseline, reported)
        if gone:
            note = f"{_count(gone, 'finding')} of {baseline} no longer there."
            Console(stderr=True, highlight=False).print(Text(note))
    _write(reported, output, functions=functions, files=len(files))
    informs = (Severity.INFORMATION, Severity.HINT)
    return FOUND if any(one.finding.severity not in informs for one in reported) else 0


async def _check_file(
    run: Running, file: Path, fixed: Fixed | None, *, unsafe: bool
) -> tuple[list[Reported], int]:
    """The findings of one file, once it is fixed, and how many functions it has that are traced."""
    path, source = str(file), read_source(file)
    run.session.open(path, source)
    if fixed is not None:
        source = await fix(run, file, source, unsafe=unsafe, into=fixed)
    functions = len(run.session.functions(path))
    found = await run.get(run.session.findings(path, kernels=True))
    run.session.close(path)
    problem = Module.parse(source).syntax_problem
    if problem is not None:
        found.append(Finding(SYNTAX, Severity.ERROR, problem.range, problem.message))
    return [Reported(path, source, finding) for finding in found], functions


async def _settings_problems(run: Running, files: Sequence[Path]) -> list[Reported]:
    """The findings of the settings files that are in force for `files`."""
    reported: list[Reported] = []
    for path in dict.fromkeys(file for file in map(_settings_file, files) if file is not None):
        source = path.read_text(encoding="utf-8", errors="replace")
        findings = await run.session.findings(str(path))
        reported += [Reported(str(path), source, finding) for finding in findings]
    return reported


def _settings_file(file: Path) -> Path | None:
    """The settings file of the project that holds `file`, if it has one."""
    for folder in file.parents:
        if any((folder / marker).exists() for marker in MARKERS):
            settings = folder / SETTINGS_FILE
            return settings if settings.is_file() else None
    return None


def _write(reported: Sequence[Reported], output: Format, *, functions: int, files: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    match output:
        case Format.TEXT:
            for one in reported:
                console.print(text.report(one))
                console.print()
            console.print(Text(_summary(reported, functions, files)))
        case Format.JSON:
            print(machine.as_json(reported))
        case Format.SARIF:
            print(machine.as_sarif(reported))
        case Format.GITHUB if reported:
            print(machine.as_github(reported))
        case Format.GITHUB:
            pass


def _summary(reported: Sequence[Reported], functions: int, files: int) -> str:
    where = f"{_count(functions, 'function')} with example inputs in {_count(files, 'file')}"
    if not reported:
        return f"No findings: {where}."
    return f"{_count(len(reported), 'finding')}: {where}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
