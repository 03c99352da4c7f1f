"""Check one file, after fixing it if requested, and the settings files of the checked projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from jaxsight.cli.arguments import read_source
from jaxsight.cli.checking.fixes import FixLog, apply_fixes
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.reports.reported import Incomplete, Refused, Reported
from jaxsight.features.caveats import Completeness, completeness
from jaxsight.features.fixes.registry import FIXES
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.kernels.uncompiled import uncompiled
from jaxsight.features.verification import Verified, verify
from jaxsight.files import reading
from jaxsight.files.markers import is_marked
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.module import Module
from jaxsight.source.slicing.caveat import Caveat
from jaxsight.source.text import Position, Range

SYNTAX = "invalid-syntax"
"""Ruff's name; it is not a rule of jaxsight, so it cannot be selected or ignored."""

UNREADABLE = "unreadable-file"
"""The code for an unreadable file in a folder; other files are still checked."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to do with each file besides reporting its findings."""

    fix_log: FixLog | None = None
    """Verified fixes are applied and recorded here; without it, files stay unchanged."""
    with_fixes: bool = False
    """Report a verified fix with each finding that has one."""
    verify: bool = False
    """Compare with the imported module."""
    verify_timeout: float | None = None
    """Seconds for each import; by default those of the settings."""


@dataclass(slots=True)
class CheckResult:
    """The result for one file or several."""

    reported: list[Reported] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    files: int = 0
    functions: int = 0
    """The number of functions with example inputs."""
    compared: int = 0
    """The number of functions with the same program as the import."""
    imported: int = 0
    """The number of files with such functions."""

    def add(self, more: CheckResult) -> None:
        """Add the result for other files."""
        self.reported += more.reported
        self.incomplete += more.incomplete
        self.refused += more.refused
        self.files += more.files
        self.functions += more.functions
        self.compared += more.compared
        self.imported += more.imported


async def check_file(
    run: CommandRun, file: Path, options: CheckOptions, *, is_argument: bool
) -> CheckResult:
    """Return the findings of one file after fixing it, and its caveats.

    Args:
        is_argument: whether the file itself was named on the command line.

    Raises:
        CommandError: a file that was named on the command line cannot be read.
    """
    path = str(file)
    try:
        source = read_source(file)
    except CommandError as error:
        if is_argument:
            raise
        start = Range(Position(0, 0), Position(0, 0))
        finding = Finding(UNREADABLE, Severity.ERROR, start, str(error))
        return CheckResult([Reported(path, "", finding)], files=1)
    run.session.open(path, source)
    if options.fix_log is not None:
        source = await apply_fixes(run, file, source, options.fix_log)
    functions = len(run.session.functions(path))
    findings = await run.get(run.session.findings(path, kernels=True))
    fixes: list[Fix] = []
    if options.with_fixes and any(finding.code in FIXES for finding in findings):
        fixes = await run.get(run.session.fixes(path))
    fix_of = {fix.finding: fix for fix in fixes}
    answers = await run.get(completeness(run.session.engine, path))
    not_compiled = await run.get(uncompiled(run.session.engine, path))
    verified = Verified()
    if options.verify:
        verified = await run.get(verify(run.session.engine, path, options.verify_timeout))
        findings += verified.findings
    run.session.close(path)
    problem = Module.parse(source).syntax_problem
    if problem is not None:
        findings.append(Finding(SYNTAX, Severity.ERROR, problem.range, problem.message))
    return CheckResult(
        reported=[
            Reported(path, source, finding, _caveats(finding, answers), fix_of.get(finding))
            for finding in findings
        ],
        incomplete=[Incomplete(path, function) for function in answers if function.caveats],
        refused=[Refused(path, function) for function in not_compiled],
        files=1,
        functions=functions,
        compared=verified.functions,
        imported=int(verified.functions > 0),
    )


def _caveats(finding: Finding, functions: Sequence[Completeness]) -> tuple[Caveat, ...]:
    """Return the caveats of a finding's function; outside of functions, of all in the file."""
    around = [function for function in functions if finding.range.start in function.range]
    caveats = {caveat for function in around or functions for caveat in function.caveats}
    return tuple(sorted(caveats, key=attrgetter("range")))


async def check_settings(run: CommandRun, files: Sequence[Path]) -> list[Reported]:
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
        if is_marked(folder):
            settings = folder / SETTINGS_FILE
            return settings if reading.exists(settings) else None
    return None
