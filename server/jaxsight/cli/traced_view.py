"""Trace the function of a command, and print its errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError, failing_on, or_nearest
from jaxsight.cli.output.notes import print_notes
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.cli.output.reports.text import report
from jaxsight.cli.parameters import InputsChoice
from jaxsight.cli.sources.arguments import Address
from jaxsight.features.findings import failures
from jaxsight.features.findings.examined import examined
from jaxsight.features.named_function import question_of, view_of
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.rules.finding import Finding
from jaxsight.source.module import Module
from jaxsight.text.units import some

_LISTED = 8
"""Functions that an error lists, a choice: all of a small file, and no screen of a large one."""


async def trace_view(
    run: CommandRun, address: Address, set_name: str | None, printer: Printer
) -> View | None:
    """Return the view of a function; if tracing failed, `None`, and the error has been printed.

    Raises:
        CommandError: the function does not exist or has no example inputs, or no tracer starts.
    """
    path, source = str(address.path), address.read()

    def show(findings: Iterable[Finding]) -> None:
        for finding in findings:
            printer.print(report(Reported(path, source, finding), printer.columns))

    await _open(run, address, source)
    try:
        if set_name is not None:
            run.session.choose_set(path, address.function, set_name)
        view = await run.get(view_of(run.session.engine, path, address.function))
    except LookupError as error:
        functions = Module.parse(source).functions
        ranges = (each.range for each in functions if each.function.qualname == address.function)
        own = next(ranges, None)
        findings = (await run.get(run.session.report(path, patience=0))).reported
        show(f for f in findings if own is not None and own.start <= f.range.start < own.end)
        raise CommandError(str(error.args[0])) from error
    show(failures.findings(view))
    if view.is_traced:
        return view
    print_notes(printer, view)
    return None


async def find_question(run: CommandRun, address: Address, set_name: str | None) -> Question:
    """Return what a tracer would be asked about a function, which is never with assumed inputs.

    Raises:
        CommandError: the function does not exist or has no example inputs.
    """
    path = str(address.path)
    await _open(run, address, address.read(), settle=False)
    with failing_on(LookupError):
        if set_name is not None:
            run.session.choose_set(path, address.function, set_name)
        return await run.get(question_of(run.session.engine, path, address.function))


async def _open(run: CommandRun, address: Address, source: str, *, settle: bool = True) -> None:
    """Open a function's file, and settle the function's example inputs.

    Args:
        run: the session.
        address: the function.
        source: the file's text.
        settle: whether calls by other functions and proposals are tried.

    Raises:
        CommandError: the function does not exist or has no example inputs; the message helps.
    """
    path, name = str(address.path), address.path.name
    run.session.open(path, source, in_background=False)
    functions = [function for _, function in Module.parse(source).functions]
    if not address.function:
        names = [function.qualname for function in functions if not function.refused]
        raise CommandError(f"missing function: write {name}:FUNCTION{_functions(names)}")
    function = next((f for f in functions if f.qualname == address.function), None)
    if function is None:
        names = [function.qualname for function in functions]
        near = or_nearest(address.function, names) or _functions(names)
        raise CommandError(f"no function {address.function} in {name}{near}")
    if address.function in run.session.engine.documents.functions(path):
        return
    if settle and run.inputs is InputsChoice.ALL:
        await run.get(run.session.background.settle(path, only=address.function))
        if address.function in run.session.engine.documents.functions(path):
            return
    examinations = await run.get(examined(run.session.engine, path, address.function))
    reason = next((each.reason for each in examinations), "")
    raise CommandError(
        f"{address.function}: {reason}; add a section to its docstring, such as\n"
        "\n"
        "    Example inputs:\n"
        "        x: f32[8, 128]"
    )


def _functions(names: Sequence[str]) -> str:
    """Return `; functions: a, b and 3 more`, or that there are none."""
    return f"; functions: {some(names, _LISTED)}" if names else "; the file has no functions"
