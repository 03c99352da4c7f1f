"""Check one file, after fixing it if requested, and the settings files of the checked projects."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from jaxsight.cli.checking.fixes import FixLog, apply_fixes
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.checking.unchanged import UnchangedFiles
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.output.reports.reported import (
    CheckResult,
    ExaminedFile,
    IncompleteFunction,
    RefusedFunction,
    Reported,
)
from jaxsight.cli.parameters import InputsChoice
from jaxsight.cli.sources.arguments import SourceFile
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.features.caveats import Completeness, completeness
from jaxsight.features.findings.examined import examined
from jaxsight.features.findings.locked import LockableFunction, LockedFile, lockable
from jaxsight.features.findings.verification import VerifiedImports, verify
from jaxsight.features.fixes.verifier import FIXES, Fix
from jaxsight.features.kernels.table import uncompiled
from jaxsight.files import reading
from jaxsight.files.reading import is_marked
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Position, Range
from jaxsight.workers.results import Sources

SYNTAX = "invalid-syntax"
"""Ruff's name; it is not a rule of jaxsight, so it cannot be selected or ignored."""

UNREADABLE = "unreadable-file"
"""The code for an unreadable file in a folder; other files are still checked."""


FAILED = "internal-error"
"""The code for a file whose check failed because of an error in jaxsight."""

_SHARE = 4
"""A file has at most so many times its even share of the time that is left for inputs.

With 1, a file that needs more gets none of what others leave; with more, the first files take all.
"""

log = logging.getLogger(__name__)


INPUTS_TIME = 120.0
"""Seconds in which inputs that nobody wrote are looked for, a choice: a minute for a program."""


@dataclass(slots=True)
class Budget:
    """The seconds in which inputs that nobody wrote are looked for, in all files together."""

    left: float
    files: int
    """The number of files that are still to be checked."""
    is_reached: bool = False
    """Whether a file needed more than its share."""

    @property
    def share(self) -> float:
        """The seconds for one file: some files need none."""
        return min(self.left, _SHARE * self.left / max(self.files, 1))

    def spend(self, seconds: float) -> bool:
        """Take the seconds that a file needed; return whether it may have needed more."""
        is_reached = seconds >= self.share / 2
        self.is_reached |= is_reached
        self.left = max(self.left - seconds, 0)
        return is_reached


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to do with each file besides reporting its findings."""

    budget: Budget
    fix_log: FixLog | None = None
    """Verified fixes are applied and recorded here; without it, files stay unchanged."""
    with_fixes: bool = False
    """Report a verified fix with each finding that has one."""
    locks: LockFiles | None = None
    """What functions compile to is compared with these."""
    verify: bool = False
    """Compare with the imported module."""
    verify_timeout: float | None = None
    """Seconds for each import; by default those of the settings."""


async def check_file(
    run: CommandRun, text: SourceFile, options: CheckOptions, unchanged: UnchangedFiles
) -> CheckResult:
    """Return the findings of one file after fixing it, and its caveats.

    Without fixes and imports, the result of an earlier check may be returned, and is stored.

    Raises:
        CommandError: a file that was named on the command line cannot be read.
    """
    path = str(text.path)
    start = Range(Position(0, 0), Position(0, 0))
    try:
        source, cells = text.read()
    except CommandError as error:
        if text.is_argument:
            raise
        finding = Finding(UNREADABLE, Severity.ERROR, start, str(error))
        return CheckResult((Reported(path, "", finding),), files=1)
    is_plain = options.fix_log is None and not options.verify and text.text is None
    if is_plain and (result := await unchanged.result(path, source, cells)) is not None:
        run.note_python(text.path)
        options.budget.files -= 1
        return result
    engine = run.session.engine
    sources = engine.projects.sources = Sources()
    engine.rules.start()  # this process is idle while JAX starts
    run.session.open(path, source, in_background=False)
    try:
        result, is_whole = await _checked(run, text, source, cells, options)
        if is_plain and is_whole:
            await unchanged.store(path, source, cells, result, sources)
        return result
    except CommandError:
        raise
    except Exception as error:
        log.exception("checking %s", path)
        message = f"internal error: {type(error).__name__}; the file was not checked"
        finding = Finding(FAILED, Severity.ERROR, start, message)
        return CheckResult((Reported(path, source, finding),))
    finally:
        run.session.close(path)
        options.budget.files -= 1


async def _checked(
    run: CommandRun, text: SourceFile, source: str, cells: Cells, options: CheckOptions
) -> tuple[CheckResult, bool]:
    """Return the findings of an open file, and whether there was time for all of its inputs."""
    path, engine = str(text.path), run.session.engine
    is_whole = await _settle(run, path, options)
    if options.fix_log is not None and text.is_fixable:
        source = await apply_fixes(run, text.path, source, options.fix_log)
        await _settle(run, path, options)
    functions_to_lock: Sequence[LockableFunction] = ()
    if options.locks is not None:  # first, as complete compiles serve findings, too
        targets = options.locks.targets(path)
        with failing_on(LookupError):
            functions_to_lock = await run.get(lockable(engine, path, targets))
    findings = (await run.get(run.session.report(path, kernels=True))).reported
    fix_of: dict[Finding, Fix] = {}
    if options.with_fixes and any(finding.code in FIXES for finding in findings):
        fixes = await run.get(run.session.fixes(path))
        fix_of = {fix.finding: fix for fix in fixes if not fix.finding.assumed}
    answers = await run.get(completeness(engine, path))
    not_compiled = await run.get(uncompiled(engine, path))
    functions = await run.get(examined(engine, path))
    verified = VerifiedImports()
    if options.verify:
        verified = await run.get(verify(engine, path, options.verify_timeout))
        findings += verified.findings
    problem = Module.parse(source).syntax_problem
    if problem is not None:
        findings.append(Finding(SYNTAX, Severity.ERROR, problem.range, problem.message))
    result = CheckResult(
        reported=tuple(
            Reported(path, source, finding, _caveats(finding, answers), fix_of.get(finding), cells)
            for finding in findings
        ),
        incomplete=tuple(
            IncompleteFunction(path, replace(function, caveats=caveats), cells)
            for function in answers
            if (caveats := _untold(path, function.caveats, findings))
        ),
        refused=tuple(RefusedFunction(path, function, cells) for function in not_compiled),
        examined=(ExaminedFile(path, tuple(functions), cells),) if functions else (),
        locked=(LockedFile(path, tuple(functions_to_lock)),) if options.locks is not None else (),
        files=1,
        compared=verified.functions,
        imported=int(verified.functions > 0),
    )
    return result, is_whole


async def _settle(run: CommandRun, path: str, options: CheckOptions) -> bool:
    """Wait for the inputs of a file's functions; return whether there was time for all."""
    if run.inputs is not InputsChoice.ALL:
        return True
    settling = run.session.background.settle(path, patience=options.budget.share)
    return not options.budget.spend(await run.get(settling))


def _untold(
    path: str, caveats: Sequence[SliceCaveat], findings: Sequence[Finding]
) -> tuple[SliceCaveat, ...]:
    """Return the caveats of a file's statements whose error is not a finding."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    told = {
        *(finding.range.start.line for finding in errors),
        *(p.range.start.line for each in errors for p in each.related if p.path == path),
    }
    return tuple(caveat for caveat in caveats if caveat.range.start.line not in told)


def _caveats(finding: Finding, functions: Sequence[Completeness]) -> tuple[SliceCaveat, ...]:
    """Return the caveats of a finding's function; outside of functions, of all in the file."""
    around = [function for function in functions if finding.range.start in function.range]
    caveats = {caveat for function in around or functions for caveat in function.caveats}
    return tuple(sorted(caveats, key=attrgetter("range")))


async def check_settings(run: CommandRun, files: Sequence[Path]) -> list[Reported]:
    """Return the findings in the settings files of the projects that contain `files`."""
    reported: list[Reported] = []
    for root in dict.fromkeys(next(filter(is_marked, file.parents), None) for file in files):
        if root is None or not reading.exists(path := root / SETTINGS_FILE):
            continue
        try:
            source = reading.text(path, strict=False)
        except reading.UnreadableError:
            source = ""  # there is a finding for it
        findings = (await run.session.report(str(path))).reported
        reported += [Reported(str(path), source, finding) for finding in findings]
    return reported
