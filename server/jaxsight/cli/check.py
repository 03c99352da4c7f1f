"""Check all functions with example inputs: `jaxsight check PATH…`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from jaxsight.cli import baseline as baselines
from jaxsight.cli import notes
from jaxsight.cli.calls import recompiled
from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.fixes import Fixed, fix
from jaxsight.cli.printing import Printer, document, print_json
from jaxsight.cli.reports import Incomplete, Refused, Reported, machine, text
from jaxsight.cli.running import Running, running
from jaxsight.cli.sources import python_files, read_source
from jaxsight.features.caveats import Completeness
from jaxsight.features.fixes.registry import FIXES
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.verification import Verified
from jaxsight.files import reading
from jaxsight.projects.projects import MARKERS, SETTINGS_FILE
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.module import Module
from jaxsight.source.slicing.caveat import Caveat
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import one_line

SYNTAX = "invalid-syntax"
"""Ruff's name; it is not a rule of jaxsight, so it cannot be selected or ignored."""

UNREADABLE = "unreadable-file"
"""The code for an unreadable file in a folder; other files are still checked."""


class Format(StrEnum):
    """Output formats of findings."""

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
    verifying: bool = False,
    verify_timeout: float | None = None,
    allow: Sequence[str] = (),
) -> int:
    """Print the findings of all files and return the exit status.

    Args:
        fixing: apply verified fixes, and report the remaining findings.
        unsafe: also apply fixes that may change signatures or values.
        calls: tests to run to find recompilations.
        baseline: a file of findings to ignore.
        new_baseline: where to write all findings instead of reporting them.
        verifying: compare with the imported modules.
        verify_timeout: seconds for each import, by default those of the settings.
        allow: hosts and interpreters that projects may use.

    Raises:
        CommandError: a path does not exist or cannot be read, or no tracer starts.
    """
    files = list(python_files(paths))
    named = {path.absolute() for path in paths}
    editor: dict[str, object] = {}
    if select:
        editor["select"] = list(select)
    if ignore:
        editor["ignore"] = list(ignore)
    if python:
        editor["python"] = python
    reported: list[Reported] = []
    incomplete: list[Incomplete] = []
    refused: list[Refused] = []
    functions = compared = imported = 0
    fixed = Fixed() if fixing else None
    async with running([*paths, *([Path()] if calls else [])], editor, allow) as run:
        for number, file in enumerate(files, 1):
            run.say(f"{number}/{len(files)} {text.shown_path(str(file))}")
            checked = await _check_file(
                run,
                file,
                fixed,
                named=file in named,
                unsafe=unsafe,
                offering=output is Format.JSON,
                verifying=verifying,
                verify_timeout=verify_timeout,
            )
            reported += checked.reported
            incomplete += checked.incomplete
            refused += checked.refused
            functions += checked.functions
            compared += checked.compared
            imported += checked.compared > 0
        reported += await _settings_problems(run, files)
        pythons = {str(file): run.python(file) for file in files}
        if calls:
            interpreter = await run.asked(run.session.interpreter(str(Path.cwd() / "tests")))
            run.say("running the tests")
            reported += await asyncio.to_thread(
                recompiled, interpreter, calls, tuple(select), tuple(ignore)
            )
    if fixed is not None:
        # Machine-readable output must not contain it.
        printer = Printer(stderr=output is not Format.TEXT)
        for line in fixed.lines:
            printer.print(line)
        printer.print(fixed.summary)
    if new_baseline is not None:
        baselines.write(new_baseline, reported)
        count = _count(len(reported), "finding")
        Printer().print(f"Wrote {count} to {one_line(str(new_baseline))}.")
        return 0
    if baseline is not None:
        reported, gone = baselines.new(baseline, reported)
        if gone:
            note = f"{_count(gone, 'finding')} in {one_line(str(baseline))} no longer reported."
            Printer(stderr=True, wrap=True).print(note)
    summary = _summary(reported, functions, len(files))
    if verifying:
        verified = f"verified {_count(compared, 'function')} in {_count(imported, 'file')}"
        summary = f"{verified}\n{summary}"
    _write(reported, incomplete, refused, output, summary, pythons)
    informs = (Severity.INFORMATION, Severity.HINT)
    return FOUND if any(one.finding.severity not in informs for one in reported) else 0


@dataclass(frozen=True, slots=True)
class _Checked:
    """The result for one file.

    `functions` counts those with example inputs, `compared` those with the program of the import.
    """

    reported: Sequence[Reported]
    incomplete: Sequence[Incomplete]
    refused: Sequence[Refused]
    functions: int
    compared: int


async def _check_file(
    run: Running,
    file: Path,
    fixed: Fixed | None,
    *,
    named: bool,
    unsafe: bool,
    offering: bool,
    verifying: bool,
    verify_timeout: float | None,
) -> _Checked:
    """Return the findings of one file after fixing it, and its caveats.

    Args:
        offering: whether to verify fixes for the findings.

    Raises:
        CommandError: a file that was named on the command line cannot be read.
    """
    path = str(file)
    try:
        source = read_source(file)
    except CommandError as error:
        if named:
            raise
        place = Range(Position(0, 0), Position(0, 0))
        finding = Finding(UNREADABLE, Severity.ERROR, place, str(error))
        return _Checked([Reported(path, "", finding)], [], [], 0, 0)
    run.session.open(path, source)
    if fixed is not None:
        source = await fix(run, file, source, unsafe=unsafe, into=fixed)
    functions = len(run.session.functions(path))
    found = await run.get(run.session.findings(path, kernels=True))
    fixes: list[Fix] = []
    if offering and any(finding.code in FIXES for finding in found):
        fixes = await run.get(run.session.fixes(path))
    fix_of = {proved.finding: proved for proved in fixes}
    answers = await run.get(run.session.completeness(path))
    refused = [Refused(path, each) for each in await run.get(run.session.uncompiled(path))]
    verified = Verified()
    if verifying:
        verified = await run.get(run.session.verify(path, verify_timeout))
        found += verified.findings
    run.session.close(path)
    problem = Module.parse(source).syntax_problem
    if problem is not None:
        found.append(Finding(SYNTAX, Severity.ERROR, problem.range, problem.message))
    reported = [
        Reported(path, source, finding, _caveats(finding, answers), fix_of.get(finding))
        for finding in found
    ]
    incomplete = [Incomplete(path, each) for each in answers if each.caveats]
    return _Checked(reported, incomplete, refused, functions, verified.functions)


def _caveats(finding: Finding, answers: Sequence[Completeness]) -> tuple[Caveat, ...]:
    """Return the caveats of a finding's function; outside of functions, of all in the file."""
    own = [each for each in answers if finding.range.start in each.range] or answers
    return tuple(
        sorted({caveat for each in own for caveat in each.caveats}, key=attrgetter("range"))
    )


async def _settings_problems(run: Running, files: Sequence[Path]) -> list[Reported]:
    """Return the findings in the settings files of `files`."""
    reported: list[Reported] = []
    for path in dict.fromkeys(file for file in map(_settings_file, files) if file is not None):
        try:
            source = reading.text(path, strict=False)
        except reading.UnreadableError:
            source = ""  # there is a finding for it
        findings = await run.session.findings(str(path))
        reported += [Reported(str(path), source, finding) for finding in findings]
    return reported


def _settings_file(file: Path) -> Path | None:
    """Return the settings file of the project that contains `file`, if there is one."""
    for folder in file.parents:
        if any(reading.exists(folder / marker) for marker in MARKERS):
            settings = folder / SETTINGS_FILE
            return settings if reading.exists(settings) else None
    return None


def _write(
    reported: Sequence[Reported],
    incomplete: Sequence[Incomplete],
    refused: Sequence[Refused],
    output: Format,
    summary: str,
    pythons: Mapping[str, object],
) -> None:
    match output:
        case Format.TEXT:
            printer = Printer()
            for one in reported:
                printer.print(text.report(one, printer.columns))
                printer.print()
            _write_notes(printer, incomplete, refused)
            printer.print(summary)
        case Format.JSON:
            print_json(machine.as_json(reported, incomplete, pythons, refused))
        case Format.SARIF:
            print_json(machine.as_sarif(reported, incomplete, refused))
        case Format.GITHUB if reported or incomplete or refused:
            document(machine.as_github(reported, incomplete, refused))
        case Format.GITHUB:
            pass


def _write_notes(
    printer: Printer, incomplete: Sequence[Incomplete], refused: Sequence[Refused]
) -> None:
    """Print a line for each skipped statement and each function that was not compiled."""
    for path, of_one in groupby(incomplete, key=attrgetter("path")):
        for line in notes.of_file(path, [each.function for each in of_one]):
            notes.print_note(printer, line)
    for one in refused:
        at = one.function.range.start.line + 1
        notes.print_note(printer, notes.said(one.path, at, one.function.message))
    if incomplete or refused:
        printer.print()


def _summary(reported: Sequence[Reported], functions: int, files: int) -> str:
    where = f"{_count(functions, 'function')} with example inputs in {_count(files, 'file')}"
    if not reported:
        return f"No findings: {where}."
    return f"{_count(len(reported), 'finding')}: {where}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
