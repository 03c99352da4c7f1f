"""Extract a bug in a JAX program as one standalone file, and reduce it: `jaxsight repro`."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import INTERRUPTED, command
from jaxsight.cli.output.printing import Printer, Text, print_json, styled, write_file
from jaxsight.cli.parameters import Allow, AsJson, Function, Group, Python, SetName
from jaxsight.cli.sources.arguments import parse_address
from jaxsight.cli.traced_view import find_question
from jaxsight.cli.user_python import user_interpreter
from jaxsight.files.reading import UnreadableError, source
from jaxsight.files.reading import text as read_text
from jaxsight.text import parsing
from jaxsight.text.inert import one_line
from jaxsight.text.names import bound_in_scope
from jaxsight.wire.frames import encode
from jaxsight_repro.capturing.case import ProgramKind
from jaxsight_repro.checks.base import FORMS, InvalidCheck, parse
from jaxsight_repro.cli.processes import run as run_process
from jaxsight_repro.cli.processes import run_captured
from jaxsight_repro.dumps.choosing import NoModule, choose
from jaxsight_repro.emit.issue import information, issue_text
from jaxsight_repro.failures import HANG_AFTER, RunFailure
from jaxsight_repro.folders import new_folder
from jaxsight_repro.processes import (
    Event,
    difference,
    emit_command,
    emit_dump_command,
    facts,
    progress,
    reduce_command,
)


class _Group(Group):
    """Takes `FILE:FUNCTION` in place of a subcommand."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand; anything that is none names a function."""
        if args and args[0] not in self.commands:
            args = ["function", *args]
        return super().resolve_command(ctx, args)


app = _Group(
    help="""Extract a bug in a JAX program as one standalone file.

    The program runs unmodified. What JAX is about to trace, compile or run is written to disk
    first, so a segmentation fault, an abort, an out-of-memory kill or a hang leaves a complete
    repro, too. The file uses the public API of JAX and NumPy only; it is run in a fresh process to
    check that it fails in the same way. Nothing is uploaded.

    [bold]Examples[/bold]

        jaxsight repro run train.py --epochs 3
        jaxsight repro run -m package.train
        jaxsight repro run --pytest tests/test_model.py::test_loss
        jaxsight repro model.py:loss
        jaxsight repro from-hlo dump/ --check crash
        jaxsight repro reduce repro.py --issue issue.md
    """
)

Output = Annotated[Path | None, "(--output -o FILE): File to write. [default: repro.py]"]

Timeout = Annotated[
    float | None,
    "(--timeout SECONDS): Interrupt the program after this time, as a hang.",
]

CheckText = Annotated[
    str,
    "(--check CHECK): What the program does wrong, if it does not fail by itself: see "
    "[cyan]jaxsight repro reduce --help[/cyan]. [default: any failure]",
]

Issue = Annotated[
    Path | None, "(--issue FILE): File for the text of JAX's bug report form, in Markdown."
]

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@app.command("run", context_settings=_PASS_ON)
@command
def run(
    program: list[str],
    *,
    module: bool = False,
    pytest: bool = False,
    output: Output = None,
    timeout: Timeout = None,
    check: CheckText = "",
    issue: Issue = None,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Run a program, and write a repro of its failure.

    Options of jaxsight come before the program, all others are the program's own.
    Exits with 0 if the repro fails in the same way as the program.

    Args:
        program (SCRIPT [ARG]...): The program, with its arguments.
        module (-m): Run a module, as [cyan]python -m[/cyan] does.
        pytest: Run tests; write a repro for each failing test.
    """
    kind: ProgramKind = "module" if module else "pytest" if pytest else "script"
    script = Path(program[0])
    if kind == "script" and not script.is_file():
        raise CommandError(f"no such file: {program[0]}")
    interpreter = user_interpreter(python, script if kind == "script" else None)
    case = _new_case()
    options = _Options(interpreter, output, check, as_json, issue)
    code, died = run_captured(interpreter, kind, case, program, timeout, check)
    if kind == "pytest" and died is None:
        return _emit_tests(case, code, options)
    return _emit(case, died, options)


@app.command("from-hlo")
@command
def from_hlo(
    dump: Path,
    *,
    check: CheckText = "",
    module: str = "",
    output: Output = None,
    timeout: float = HANG_AFTER,
    issue: Issue = None,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Write a repro of a program that XLA or JAX dumped.

    Takes HLO (text or proto, before or after optimizations), StableHLO (text or bytecode), a
    serialized `jax.export.Exported`, or the folder that a crashed run wrote with
    `XLA_FLAGS=--xla_dump_to=DIR`: the module that was being compiled when the run ended.
    Exits with 0 if the repro fails as `--check` says.

    Args:
        dump (DUMP): A dumped program, or a folder.
        module (NAME): Module of a folder, such as [cyan]jit_step[/cyan]. [default: the one that was
            being compiled]
        timeout (SECONDS): Time after which the program hangs.
    """
    with failing_on(InvalidCheck, about=f"--check {check}: "):
        parse(check)
    with failing_on(NoModule):
        chosen = choose(dump, module)
    notes = Printer(stderr=True)
    if chosen.why:
        notes.print(f"note: {one_line(chosen.why)}")
    interpreter = user_interpreter(python, None)
    out = output or Path("repro.py")
    event = run_process(emit_dump_command(interpreter, chosen.path, out, check, timeout))
    return _report(event, _Options(interpreter, out, check, as_json, issue))


@app.command("function", hidden=True)
@command
async def function(
    function: Function,
    *,
    set_name: SetName = None,
    output: Output = None,
    limit: Timeout = None,
    check: CheckText = "",
    issue: Issue = None,
    python: Python = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> int:
    """Call a function with its example inputs, and write a repro of its failure.

    Exits with 0 if the repro fails in the same way as the function.
    """
    address = parse_address(function)
    case = _new_case()
    request = case / "request"
    async with start_run([address.path], python, allow) as run:
        interpreter = run.python_path(address.path)
        question = await find_question(run, address, set_name)
        await asyncio.to_thread(request.write_bytes, encode(question.trace))
    _, died = await asyncio.to_thread(
        run_captured, interpreter, "function", case, [str(request)], limit, check
    )
    options = _Options(interpreter, output, check, as_json, issue)
    return await asyncio.to_thread(_emit, case, died, options)


def _emit(case: Path, died: RunFailure | None, options: _Options) -> int:
    """Write the repro of a case, and print what came of it; return the exit status."""
    out = options.out or Path("repro.py")
    event = run_process(emit_command(options.python, case, out, died, options.check))
    status = _report(event, options)
    if status == FOUND:
        Printer(stderr=True).print(f"note: the captured case is in {one_line(str(case))}")
    else:
        shutil.rmtree(case, ignore_errors=True)
    return status


def _report(event: Event, options: _Options) -> int:
    """Print what came of a repro; return the exit status."""
    if options.issue is not None and event["reproduces"]:
        failure = RunFailure(**event["expected"])
        write_issue(options.issue, Path(event["path"]), options.python, failure)
    if options.as_json:
        print_json(event)
    else:
        _print_verdict(event)
    return 0 if event["reproduces"] else FOUND


def _emit_tests(cases: Path, code: int, options: _Options) -> int:
    """Write the repro of each failing test into a folder; return the exit status."""
    folder = options.out or Path("repros")
    records: list[Event] = []
    folder.mkdir(parents=True, exist_ok=True)
    for case in sorted(path for path in cases.iterdir() if (path / "ended.json").is_file()):
        try:
            out = folder / f"{case.name}.py"
            event = run_process(emit_command(options.python, case, out, None))
        except CommandError as error:
            Printer(stderr=True).labelled("error", "bold red", f"{case.name}: {error}")
            continue
        records.append(event)
        if not options.as_json:
            _print_verdict(event)
    if options.as_json:
        print_json(records)
    elif not records:
        Printer().print("no failing test reached JAX" if code else "all tests passed")
    return 0 if records and all(record["reproduces"] for record in records) else FOUND


@dataclass(frozen=True, slots=True)
class _Options:
    """How a repro is written and reported."""

    python: str
    out: Path | None
    check: str
    as_json: bool
    issue: Path | None


def _print_verdict(event: Event) -> None:
    path = os.path.relpath(event["path"])
    headline = RunFailure(**event["expected"]).headline
    verdict = headline if event["reproduces"] else difference(event)
    Printer().print(styled((one_line(path), "bold"), f": {one_line(verdict)}"))


def _new_case() -> Path:
    """Return a new folder for a case, which survives this process."""
    with failing_on(LookupError):
        return new_folder("cases")


def write_issue(issue: Path, repro: Path, python: str, failure: RunFailure) -> None:
    """Write the bug report of a repro."""
    text = issue_text(read_text(repro), failure, information(python))
    write_file(issue, text.encode())


_FORMS = ", ".join(f"[cyan]{form.text.replace('[', chr(92) + '[')}[/cyan]" for form in FORMS)

InterestingCheck = Annotated[
    str,
    f"(--check CHECK): What makes a program interesting: {_FORMS}. "
    "[default: the failure of the file itself]",
]


@app.command("reduce")
@command
def reduce(
    repro: Path,
    *,
    check: InterestingCheck = "",
    output: Path | None = None,
    jobs: int = 2,
    timeout: float = HANG_AFTER,
    issue: Issue = None,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Make a repro smaller while it fails in the same way.

    Each candidate runs in a process of its own. Ctrl-C keeps the smallest program so far; the same
    command continues where an earlier one ended.
    Exits with 1 if the file could not be made smaller.

    [bold]Examples[/bold]

        jaxsight repro reduce repro.py
        jaxsight repro reduce repro.py --check "temp>64MiB" -o small.py
        jaxsight repro reduce repro.py --check differs:jit,eager --issue issue.md

    Args:
        repro (REPRO.py): A repro, or a script that fails.
        output (--output -o OUT.py): File to write. [default: REPRO_min.py]
        jobs (>=1): Candidates to run at the same time.
        timeout (SECONDS): Time after which a candidate is a hang.
    """
    with failing_on(InvalidCheck, about=f"--check {check}: "):
        parse(check)
    with failing_on(UnreadableError):
        text = source(repro)
    out = output or repro.with_name(f"{repro.stem}_min.py")
    interpreter = user_interpreter(python, repro)
    with tempfile.TemporaryDirectory(prefix="jaxsight-") as folder:
        file = repro.absolute()
        if not _is_repro(text) and not check.startswith("command:"):
            # A script: reduce the repro of its failure.
            case, script = Path(folder, "case"), [str(file)]
            _, died = run_captured(interpreter, "script", case, script, check=check)
            captured = Path(folder, f"{repro.stem}.py")
            try:
                run_process(emit_command(interpreter, case, captured, died, check))
                file = captured
            except CommandError:
                if died is None or check:
                    raise
                # It died while JAX traced: the statements of the script are reduced.
        event = _followed(reduce_command(interpreter, file, out, text, check, jobs, timeout))
    if issue is not None:
        failure = RunFailure(**event["failure"])
        write_issue(issue, out.absolute(), interpreter, failure)
    if as_json:
        print_json(event)
    else:
        _print_result(event)
    if event["interrupted"]:
        return INTERRUPTED
    return 0 if event["after"] < event["before"] else FOUND


def _is_repro(text: str) -> bool:
    """Return whether a file defines `main` and `inputs`, as repros do."""
    unreadable = (SyntaxError, ValueError, RecursionError, MemoryError)
    with failing_on(*unreadable, about="not a Python file: "):
        tree = parsing.parse(text)
    return {"main", "inputs"} <= set(bound_in_scope(tree))


def _followed(arguments: Sequence[str]) -> Event:
    """Run a reduction, and show its progress."""
    errors = Printer(stderr=True)
    if not errors.is_terminal:
        return run_process(arguments)
    with errors.status("starting JAX") as status:
        show: Callable[[Event], None] = lambda event: status.update(Text(one_line(progress(event))))
        return run_process(arguments, show)


def _print_result(event: Event) -> None:
    printer = Printer()
    failure = RunFailure(**event["failure"])
    path = one_line(os.path.relpath(event["path"]))
    printer.print(styled((path, "bold"), f": {one_line(failure.headline)}"))
    printer.print(facts(event))
    for other in event["others"]:
        printer.print(f"note: another failure turned up: {one_line(os.path.relpath(other))}")
