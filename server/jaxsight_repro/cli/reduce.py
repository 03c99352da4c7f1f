"""Make a repro smaller while it fails in the same way: `jaxsight repro reduce`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import INTERRUPTED
from jaxsight.cli.execution import command as as_command
from jaxsight.cli.options import AsJson, Python
from jaxsight.cli.output.printing import Printer, Text, print_json, styled
from jaxsight.cli.parameters import Option, Positional
from jaxsight.cli.user_python import user_interpreter
from jaxsight.files.reading import UnreadableError, source
from jaxsight.text import parsing
from jaxsight.text.inert import one_line
from jaxsight.text.names import bound_in_scope
from jaxsight_repro.checks.base import InvalidCheck
from jaxsight_repro.checks.parsing import FORMS, parse
from jaxsight_repro.cli.bug_report import Issue, write_issue
from jaxsight_repro.cli.processes import run, run_captured
from jaxsight_repro.failures import HANG_AFTER, RunFailure
from jaxsight_repro.processes import Event, emit_command, facts, progress, reduce_command

Repro = Annotated[Path, Positional(metavar="REPRO.py", help="A repro, or a script that fails.")]

CheckText = Annotated[
    str,
    Option(
        "--check",
        metavar="CHECK",
        help="What makes a program interesting: "
        + ", ".join(f"[cyan]{form.text.replace('[', chr(92) + '[')}[/cyan]" for form in FORMS)
        + ".",
        show_default="the failure of the file itself",
    ),
]

Output = Annotated[
    Path | None,
    Option("--output", "-o", metavar="OUT.py", help="File to write.", show_default="REPRO_min.py"),
]

Jobs = Annotated[int, Option(min=1, help="Candidates to run at the same time.")]

Timeout = Annotated[
    float,
    Option("--timeout", metavar="SECONDS", help="Time after which a candidate is a hang."),
]


@as_command
def reduce(
    repro: Repro,
    check: CheckText = "",
    output: Output = None,
    jobs: Jobs = 2,
    timeout: Timeout = HANG_AFTER,
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
                run(emit_command(interpreter, case, captured, died, check))
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


def _followed(command: Sequence[str]) -> Event:
    """Run a reduction, and show its progress."""
    errors = Printer(stderr=True)
    if not errors.is_terminal:
        return run(command)
    with errors.status("starting JAX") as status:
        show: Callable[[Event], None] = lambda event: status.update(Text(one_line(progress(event))))
        return run(command, show)


def _print_result(event: Event) -> None:
    printer = Printer()
    failure = RunFailure(**event["failure"])
    path = one_line(os.path.relpath(event["path"]))
    printer.print(styled((path, "bold"), f": {one_line(failure.headline)}"))
    printer.print(facts(event))
    for other in event["others"]:
        printer.print(f"note: another failure turned up: {one_line(os.path.relpath(other))}")
