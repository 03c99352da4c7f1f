"""Check all functions with example inputs: `jaxsight check PATH…`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import rich_click as click

from jaxsight.cli.checking import baseline as baselines
from jaxsight.cli.checking.file_check import (
    INPUTS_TIME,
    Budget,
    CheckOptions,
    check_file,
    check_settings,
)
from jaxsight.cli.checking.fixes import FixLog
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.checking.recompilations import new_findings, recompiled
from jaxsight.cli.checking.unchanged import UnchangedFiles
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.output import notes
from jaxsight.cli.output.printing import Printer, print_document, print_note, write_file
from jaxsight.cli.output.reports import text
from jaxsight.cli.output.reports.formats import FindingsFormat, document, parse_report
from jaxsight.cli.output.reports.reported import CheckResult, misses, totals
from jaxsight.cli.parameters import Allow, InputsChoice, Python, Target, WhichInputs
from jaxsight.cli.sources.arguments import SourceFile, texts
from jaxsight.settings.kinds import CODE_LIST
from jaxsight.text.units import count

_TIME_IS_UP = "note: the time limit for inputs was reached in some files; raise --inputs-time"


@command
async def check(
    paths: list[Path] | None = None,
    *,
    output_format: FindingsFormat = FindingsFormat.TEXT,
    report: list[str] | None = None,
    select: list[str] | None = None,
    ignore: list[str] | None = None,
    target: Target = None,
    fix: bool = False,
    unsafe_fixes: bool = False,
    calls: list[str] | None = None,
    baseline: Path | None = None,
    write_baseline: Path | None = None,
    verify_import: bool = False,
    verify_timeout: float | None = None,
    locked: bool = False,
    update: bool = False,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    inputs_time: float = INPUTS_TIME,
    no_cache: bool = False,
    stdin_filename: Path | None = None,
    verbose: bool = False,
) -> int:
    """Trace all functions and report errors and performance problems.

    Exits with 0 if there are no findings, with 1 if there are errors or
    warnings, with 2 if the check fails, and with 3 if nothing was examined.

    [bold]Examples[/bold]

        jaxsight check
        jaxsight check src tests/test_model.py --ignore JX404
        jaxsight check src --fix --target cuda:h100x8
        jaxsight check --calls tests --verify-import
        jaxsight check --locked --update
        jaxsight check --output-format github --report sarif:jaxsight.sarif
        jaxsight check - --stdin-filename src/model.py < model.py

    Args:
        paths (PATH): Files or folders to check, or `-` for stdin. [default: .]
        output_format: Output format for findings.
        report (FORMAT:FILE): Also write the findings to a file, e.g.
            [cyan]sarif:jaxsight.sarif[/cyan]. Repeatable.
        select (RULE): Rules or rule prefixes to enable (e.g. JX4). Repeatable.
        ignore (RULE): Rules or rule prefixes to disable. Repeatable.
        fix: Apply verified safe fixes.
        unsafe_fixes: Also apply fixes that may change signatures or values.
        calls (TEST): Also run these pytest targets and report recompilations.
        baseline (FILE): Ignore findings listed in this baseline file.
        write_baseline (FILE): Write all findings to a baseline file.
        verify_import: Also import each file and report functions whose programs differ.
        verify_timeout (SECONDS>=0.1): Time limit for each import. [default: the setting
            timeouts.execute]
        locked: Also report functions that differ from jaxsight.lock.
        update: With --locked: accept what differs into jaxsight.lock.
        inputs_time (SECONDS>=0): Time limit for finding inputs that nobody wrote, in all files
            together.
        no_cache: Trace all files, also those unchanged since the last check.
        stdin_filename (FILE): Name of the file that stdin has, for settings and imports.
        verbose (--verbose -v): List each function with its inputs, or with the reason why it was
            not examined.
    """
    paths = paths or [Path()]
    files = list(texts(paths, stdin_filename))
    fix_log = FixLog.of(files, unsafe=unsafe_fixes) if fix or unsafe_fixes else None
    reports = [parse_report(each) for each in report or ()]
    with_fixes = FindingsFormat.JSON in (output_format, *(format for format, _ in reports))
    rules = {"select": _codes("--select", select), "ignore": _codes("--ignore", ignore)}
    if update and not locked:
        raise CommandError("--update requires --locked")
    budget = Budget(inputs_time, len(files))
    # What the user named is trusted, not what links in a folder lead to.
    is_stdin = any(file.text is not None for file in files)
    roots = [*([file.path for file in files] if is_stdin else paths), *([Path()] if calls else [])]
    chosen = {name: codes for name, codes in rules.items() if codes}  # else those of the project
    async with start_run(roots, python, allow, which, chosen, targets=[target]) as run:
        run.choose_target(target)
        locks = LockFiles(run.session.engine.projects) if locked else None
        options = CheckOptions(budget, fix_log, with_fixes, locks, verify_import, verify_timeout)
        total = await _check(run, files, options, no_cache=no_cache, updates=update)
        pythons: dict[str, object] = {str(file.path): run.python(file.path) for file in files}
        if calls:
            await _add_recompiled(run, total, calls, **rules)
    if budget.is_reached and misses(total.examined):
        print_note(Printer(stderr=True), _TIME_IS_UP)
    if fix_log is not None:
        fix_log.print(Printer(stderr=output_format is not FindingsFormat.TEXT))  # not in it
    if write_baseline is not None:
        baselines.write(write_baseline, total.reported)
        return 0
    if baseline is not None:
        total.reported = tuple(baselines.new(baseline, total.reported))
    for format, file in reports:
        write_file(file, document(total, format, pythons).encode())
    _print(total, output_format, pythons, with_verified=verify_import, verbose=verbose)
    return total.status(has_run_tests=bool(calls))


def _codes(option: str, arguments: Sequence[str] | None) -> list[str]:
    """Return the rules of an option, which may be separated by commas."""
    codes = [code for argument in arguments or [] for code in argument.split(",") if code]

    def complain(_: object, message: str, help: str) -> None:
        raise click.BadParameter("; ".join(filter(None, (message, help))), param_hint=option)

    CODE_LIST.read(codes, complain)
    return codes


async def _check(
    run: CommandRun,
    files: Sequence[SourceFile],
    options: CheckOptions,
    *,
    no_cache: bool,
    updates: bool,
) -> CheckResult:
    """Check all files, and the settings of their projects.

    Args:
        run: the run.
        files: what the command line names.
        options: what to do with each.
        no_cache: whether results of earlier checks are not used.
        updates: whether what differs from locks is written into them, and not reported.

    Raises:
        CommandError: a file cannot be read, there is no lock, or no tracer starts.
    """
    total, locks = CheckResult(), options.locks
    if locks is not None and not updates:
        locks.require([str(file.path) for file in files])
    # Without time for inputs that nobody wrote, those of an earlier check do not count either.
    may_read = not no_cache and options.budget.left > 0
    unchanged = UnchangedFiles(run, with_fixes=options.with_fixes, may_read=may_read, locks=locks)
    for number, file in enumerate(files, 1):
        run.show_step(f"{number}/{len(files)} {text.path_text(str(file.path))}")
        total.add(await check_file(run, file, options, unchanged))
        run.note_target(file.path)
    if locks is not None:
        sources = {str(file.path): file for file in files}
        total.reported += tuple(locks.finish(total.locked, sources, updates))
    total.reported += tuple(await check_settings(run, [file.path for file in files]))
    return total


async def _add_recompiled(
    run: CommandRun, total: CheckResult, tests: list[str], select: list[str], ignore: list[str]
) -> None:
    """Run tests, and add the recompilations in them."""
    run.show_step("running the tests")
    python = run.python_path(Path.cwd() / "tests")
    found = await asyncio.to_thread(recompiled, python, tests, tuple(select), tuple(ignore))
    total.reported += tuple(new_findings(found, total.reported))


def _print(
    total: CheckResult,
    output_format: FindingsFormat,
    pythons: dict[str, object],
    *,
    with_verified: bool,
    verbose: bool,
) -> None:
    if output_format is not FindingsFormat.TEXT:
        print_document(document(total, output_format, pythons))
        return
    printer = Printer()
    for finding in total.reported:
        printer.print(text.report(finding, printer.columns))
        printer.print()
    notes.print_file_notes(printer, total.incomplete, total.refused)
    if verbose:
        notes.print_examined(printer, total.examined)
    printer.print("\n".join(_summary(total, with_verified, verbose)))


def _summary(total: CheckResult, with_verified: bool, verbose: bool) -> Iterator[str]:
    if with_verified:
        compared, imported = count(total.compared, "function"), count(total.imported, "file")
        yield f"verified {compared} in {imported}"
    findings = count(len(total.reported), "finding") if total.reported else "No findings"
    yield f"{findings}: {totals(total.examined)} in {count(total.files, 'file')}."
    if missed := misses(total.examined):
        yield f"{missed}." + ("" if verbose else " List them with --verbose.")
