"""Check all functions with example inputs: `jaxsight check PATH…`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.arguments import python_files
from jaxsight.cli.checking import baseline as baselines
from jaxsight.cli.checking.file_check import CheckOptions, CheckResult, check_file, check_settings
from jaxsight.cli.checking.fixes import FixLog
from jaxsight.cli.checking.recompilations import recompiled
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.options import Allow, Python
from jaxsight.cli.output import notes
from jaxsight.cli.output.printing import Printer, print_document, print_json
from jaxsight.cli.output.reports import machine, text
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.cli.trusted_paths import hosts
from jaxsight.rules.finding import Severity
from jaxsight.settings.kinds import CODE_LIST
from jaxsight.text.inert import one_line
from jaxsight.text.units import count


class Format(StrEnum):
    """Output formats of findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Files or folders to check.", show_default="."),
]

OutputFormat = Annotated[Format, typer.Option(help="Output format for findings.")]

Select = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Rules or rule prefixes to enable (e.g. JX4). Repeatable."),
]

Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Rules or rule prefixes to disable. Repeatable."),
]

ApplyFixes = Annotated[bool, typer.Option("--fix", help="Apply verified safe fixes.")]

ApplyUnsafeFixes = Annotated[
    bool,
    typer.Option("--unsafe-fixes", help="Also apply fixes that may change signatures or values."),
]

Calls = Annotated[
    list[str] | None,
    typer.Option(metavar="TEST", help="Also run these pytest targets and report recompilations."),
]

Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Ignore findings listed in this baseline file."),
]

WriteBaseline = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write all findings to a baseline file.")
]

VerifyImport = Annotated[
    bool,
    typer.Option(
        "--verify-import",
        help="Also import each file and report functions whose programs differ.",
    ),
]

VerifyTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help="Time limit for each import.",
        show_default="the setting timeouts.execute",
    ),
]


Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="Target device, as listed by [cyan]jaxsight targets[/cyan].",
        show_default="the project's",
    ),
]


@command
async def check(
    paths: Paths = None,
    output_format: OutputFormat = Format.TEXT,
    select: Select = None,
    ignore: Ignore = None,
    target: Target = None,
    fix: ApplyFixes = False,
    unsafe_fixes: ApplyUnsafeFixes = False,
    calls: Calls = None,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = None,
    verify_import: VerifyImport = False,
    verify_timeout: VerifyTimeout = None,
    python: Python = None,
    allow: Allow = None,
) -> int:
    """Check all functions with example inputs and report errors and performance problems.

    Exits with 0 if there are no findings, with 1 if there are errors or
    warnings, and with 2 if the check fails.

    [bold]Examples[/bold]

        jaxsight check
        jaxsight check src tests/test_model.py --ignore JX404
        jaxsight check src --fix
        jaxsight check --target cuda:h100x8
        jaxsight check --calls tests
        jaxsight check --verify-import
        jaxsight check --output-format github
    """
    fix_log = FixLog(unsafe=unsafe_fixes) if fix or unsafe_fixes else None
    with_fixes = output_format is Format.JSON
    options = CheckOptions(fix_log, with_fixes, verify_import, verify_timeout)
    rules = {"select": _codes("--select", select), "ignore": _codes("--ignore", ignore)}
    total, pythons = await _check(
        paths or [Path()], options, rules, target, python, calls or (), allow or ()
    )
    if fix_log is not None:
        # Machine-readable output must not contain it.
        fix_log.print(Printer(stderr=output_format is not Format.TEXT))
    if write_baseline is not None:
        baselines.write(write_baseline, total.reported)
        findings = count(len(total.reported), "finding")
        Printer().print(f"Wrote {findings} to {one_line(str(write_baseline))}.")
        return 0
    if baseline is not None:
        total.reported = _new_findings(baseline, total.reported)
    _print(total, output_format, pythons, with_verified=verify_import)
    informs = (Severity.INFORMATION, Severity.HINT)
    severities = [reported.finding.severity for reported in total.reported]
    return FOUND if any(severity not in informs for severity in severities) else 0


def _codes(option: str, arguments: Sequence[str] | None) -> list[str]:
    """Return the rules of an option, which may be separated by commas."""
    codes = [code for argument in arguments or [] for code in argument.split(",") if code]

    def complain(_: object, message: str, help: str) -> None:
        raise typer.BadParameter("; ".join(filter(None, (message, help))), param_hint=option)

    CODE_LIST.read(codes, complain)
    return codes


def _choose_target(run: CommandRun, target: str) -> None:
    try:
        run.session.choose_target(target)
    except LookupError as error:
        raise CommandError(str(error.args[0])) from error


async def _check(
    paths: Sequence[Path],
    options: CheckOptions,
    rules: Mapping[str, Sequence[str]],
    target: str | None,
    python: str | None,
    calls: Sequence[str],
    allow: Sequence[str],
) -> tuple[CheckResult, dict[str, object]]:
    """Check all files; return the result, and the Python environment of each file.

    Args:
        rules: the settings `select` and `ignore`; empty ones leave those of the project.
        calls: tests to run to find recompilations.

    Raises:
        CommandError: a path does not exist or cannot be read, there is no such target, or no
            tracer starts.
    """
    files = list(python_files(paths))
    arguments = {path.absolute() for path in paths}
    editor: dict[str, object] = {name: list(codes) for name, codes in rules.items() if codes}
    if python:
        editor["python"] = python
    # Scripts among the files run no further than their own example inputs need.
    editor["examplesFromModule"] = False
    total = CheckResult()
    named = hosts([target] if target else ())
    async with start_run([*paths, *([Path()] if calls else [])], editor, [*allow, *named]) as run:
        if target:
            _choose_target(run, target)
        for number, file in enumerate(files, 1):
            run.show_step(f"{number}/{len(files)} {text.shown_path(str(file))}")
            total.add(await check_file(run, file, options, is_argument=file in arguments))
        total.reported += await check_settings(run, files)
        pythons: dict[str, object] = {str(file): run.python(file) for file in files}
        if calls:
            interpreter = run.python_path(Path.cwd() / "tests")
            run.show_step("running the tests")
            total.reported += await asyncio.to_thread(
                recompiled, interpreter, calls, tuple(rules["select"]), tuple(rules["ignore"])
            )
    return total, pythons


def _new_findings(baseline: Path, reported: Sequence[Reported]) -> list[Reported]:
    """Return the findings that a baseline does not list, and print how many of its own are gone."""
    new, gone = baselines.compare(baseline, reported)
    if gone:
        note = f"{count(gone, 'finding')} in {one_line(str(baseline))} no longer reported."
        Printer(stderr=True, wrap=True).print(note)
    return new


def _print(
    total: CheckResult, format: Format, pythons: Mapping[str, object], *, with_verified: bool
) -> None:
    reported, incomplete, refused = total.reported, total.incomplete, total.refused
    match format:
        case Format.TEXT:
            printer = Printer()
            for finding in reported:
                printer.print(text.report(finding, printer.columns))
                printer.print()
            notes.print_file_notes(printer, incomplete, refused)
            printer.print(_summary(total, with_verified))
        case Format.JSON:
            print_json(machine.as_json(reported, incomplete, pythons, refused))
        case Format.SARIF:
            print_json(machine.as_sarif(reported, incomplete, refused))
        case Format.GITHUB if reported or incomplete or refused:
            print_document(machine.as_github(reported, incomplete, refused))
        case Format.GITHUB:
            pass


def _summary(total: CheckResult, with_verified: bool) -> str:
    functions, files = count(total.functions, "function"), count(total.files, "file")
    findings = count(len(total.reported), "finding") if total.reported else "No findings"
    summary = f"{findings}: {functions} with example inputs in {files}."
    if not with_verified:
        return summary
    compared, imported = count(total.compared, "function"), count(total.imported, "file")
    return f"verified {compared} in {imported}\n{summary}"
