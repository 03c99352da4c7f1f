"""Trace the function of a command, and print its errors."""

from __future__ import annotations

from jaxsight.cli.arguments import Address, read_source
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError, or_nearest
from jaxsight.cli.output.notes import print_notes
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.cli.output.reports.text import report
from jaxsight.features.findings import failures
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.source.module import Module
from jaxsight.source.text import Range
from jaxsight.wire.messages.replies import Traced


async def trace_view(
    run: CommandRun, address: Address, source: str, set_name: str | None, printer: Printer
) -> View:
    """Return the view of a function; if tracing failed, the error has been printed.

    Raises:
        CommandError: the function does not exist or has no example inputs, or no tracer starts.
    """
    path = str(address.path)
    run.session.open(path, source)
    _check_function(run, address, source)
    try:
        if set_name is not None:
            run.session.choose_set(path, address.function, set_name)
        view = await run.get(run.session.view(path, address.function))
    except LookupError as error:
        own = _range(address.function, source)
        for finding in await run.get(run.session.findings(path, patience=0)):
            if own is not None and own.start <= finding.range.start < own.end:
                printer.print(report(Reported(path, source, finding), printer.columns))
        raise CommandError(str(error.args[0])) from error
    for finding in failures.findings(view):
        printer.print(report(Reported(path, source, finding), printer.columns))
    if not isinstance(view.answer.reply, Traced):
        print_notes(printer, path, view.caveats)
    return view


async def find_question(run: CommandRun, address: Address, set_name: str | None) -> Question:
    """Return what a tracer would be asked about a function.

    Raises:
        CommandError: the function does not exist or has no example inputs.
    """
    path = str(address.path)
    source = read_source(address.path)
    run.session.open(path, source)
    _check_function(run, address, source)
    try:
        if set_name is not None:
            run.session.choose_set(path, address.function, set_name)
        return await run.get(run.session.question(path, address.function))
    except LookupError as error:
        raise CommandError(str(error.args[0])) from error


def _range(name: str, source: str) -> Range | None:
    for chunk, function in Module.parse(source).functions:
        if function.qualname == name:
            return function.range.shifted(chunk.first_line)
    return None


def _check_function(run: CommandRun, address: Address, source: str) -> None:
    """Raise a helpful error if the function does not exist or has no example inputs."""
    path = str(address.path)
    ready = run.session.functions(path)
    if address.function in ready:
        return
    name = address.path.name
    if not address.function:
        names = ", ".join(ready) or "none"
        raise CommandError(
            f"missing function: write {name}:FUNCTION; functions with example inputs: {names}"
        )
    everything = [function.qualname for _, function in Module.parse(source).functions]
    if address.function not in everything:
        raise CommandError(
            f"no function {address.function} in {name}{or_nearest(address.function, everything)}"
        )
    raise CommandError(
        f"{address.function} has no example inputs; add a section to its docstring, such as\n"
        "\n"
        "    Example inputs:\n"
        "        x: f32[8, 128]"
    )
