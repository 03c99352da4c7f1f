"""Print the kernels of a function on a target: `jaxsight kernels FILE:FUNCTION`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND
from jaxsight.cli.execution import command
from jaxsight.cli.options import (
    Against,
    Allow,
    AsJson,
    Function,
    InputsChoice,
    Python,
    SetName,
    StdinFunction,
    Targets,
    WhichInputs,
)
from jaxsight.cli.output.notes import print_inputs, print_notes
from jaxsight.cli.output.printing import (
    MOST_ROWS,
    Printer,
    print_document,
    print_json,
    print_rows,
    styled,
)
from jaxsight.cli.sources.arguments import (
    Address,
    parse_address,
    parse_against,
    paths_of,
)
from jaxsight.cli.traced_view import trace_view
from jaxsight.drawing.dot import dot
from jaxsight.drawing.kernel_picture import svg
from jaxsight.features import inputs
from jaxsight.features.inlay_hints.functions import SIGN
from jaxsight.features.kernels import pallas
from jaxsight.features.kernels.pallas import CalledKernels, called_kernels
from jaxsight.features.kernels.table import record as figures
from jaxsight.features.named_function import compiled_function, name_sizes
from jaxsight.figures import host_transfers, program_notes
from jaxsight.figures.program_notes import change, memory_lines
from jaxsight.figures.rows import COLUMNS, FEW, SIDES, group_title, groups, rows
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.programs.refused import Refused
from jaxsight.targets.roofline import bounds, total
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.wire.messages.replies import Traced

_NAMED = 5
"""Kernels without an estimate that a line names, a choice: more would wrap."""
_MOST_MODULES = 40
"""Functions and modules in a table, a choice: a screen. Those inside the last are added up."""

_Form = Literal["json", "dot", "svg", "hlo", "modules", "table"]


@command
async def kernels(
    function: Function,
    *,
    targets: Targets = None,
    set_name: SetName = None,
    against: Against = None,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    by_module: bool = False,
    as_json: AsJson = False,
    as_dot: bool = False,
    as_svg: bool = False,
    as_hlo: bool = False,
    stdin_filename: StdinFunction = None,
) -> int:
    """Show the kernels XLA generates for a function; the target device need not be present.

    The function is traced with its example inputs and compiled, but not run.

    [bold]Examples[/bold]

        jaxsight kernels model.py:loss --target cuda:h100
        jaxsight kernels model.py:fast --against model.py:slow
        jaxsight kernels model.py:loss --against HEAD
        jaxsight kernels model.py:loss --svg > loss.svg

    Args:
        by_module: Print a row for each function or module instead of each kernel.
        as_dot (--dot): Print the kernel graph in Graphviz DOT format.
        as_svg (--svg): Print the kernel graph as SVG.
        as_hlo (--hlo): Print the optimized HLO.
    """
    complete = not (as_dot or as_svg or as_hlo)
    forms: dict[_Form, bool] = {"json": as_json, "dot": as_dot, "svg": as_svg, "hlo": as_hlo}
    table: _Form = "modules" if by_module else "table"
    form = next((name for name, is_requested in forms.items() if is_requested), table)
    address = parse_address(function, stdin_filename)
    baseline = parse_against(against, address)
    printer = Printer(wrap=form == table)
    paths = paths_of(address, baseline)
    async with start_run(paths, python, allow, which, targets=targets or ()) as run:
        uncompiled: list[dict[str, object]] | None = [] if form == "json" else None
        after = await _results(
            run,
            address,
            targets or (),
            set_name,
            printer,
            complete,
            blocks=form == "table",
            uncompiled=uncompiled,
        )
        before = []
        if baseline is not None:
            its_set = set_name if baseline.revision else None
            before = await _results(run, baseline, targets or (), its_set, printer, complete)
        traced_by = run.python(address.path)
        called = [
            await run.get_by_name(called_kernels(run.session.engine, each.view, each.target.name))
            for each in after
            if form == "json"
        ]
    if uncompiled:
        records = [*_records(address, after, called, None, (), traced_by), *uncompiled]
        print_json(records[0] if len(records) == 1 else records)
        return FOUND
    if not after or (baseline and not before):
        return FOUND
    if form == "json":
        records = _records(address, after, called, baseline, before, traced_by)
        print_json(records[0] if len(records) == 1 else records)
        return 0
    # Graphs and HLO are input of other programs: notes go to stderr.
    notes = printer if form == table else Printer(stderr=True)
    print_inputs(notes, after[0].view, sizes=True)
    print_notes(notes, str(address.path), after[0].view.caveats)
    if before and baseline is not None and not baseline.revision:
        print_notes(notes, str(baseline.path), before[0].view.caveats)
    for index, compiled in enumerate(after):
        _print(printer, form, address, compiled, before[index] if before else None)
    return 0


async def _results(
    run: CommandRun,
    address: Address,
    targets: Sequence[str],
    set_name: str | None,
    printer: Printer,
    complete: bool,
    *,
    blocks: bool = False,
    uncompiled: list[dict[str, object]] | None = None,
) -> list[LocatedFigures]:
    """Return the kernels on each target; if there are none, the error has been printed.

    Args:
        blocks: print the blocks of Pallas kernels, which are known before anything is compiled.
        uncompiled: takes, as JSON, what is known of the function on targets that it is not compiled
            for. By default the error is printed, and ends it.
    """
    view = await trace_view(run, address, address.read(), set_name, printer)
    if not isinstance(view.answer.reply, Traced):
        return []
    await run.get(name_sizes(run.session.engine, view))
    results = []
    for target in targets or (None,):
        if blocks:
            _print_pallas(
                printer, await run.get_by_name(called_kernels(run.session.engine, view, target))
            )
        run.show_step(f"compiling {address.function}" + (f" for {target}" if target else ""))
        view, result = await run.get_by_name(
            compiled_function(
                run.session.engine, str(address.path), address.function, target, complete=complete
            )
        )
        if isinstance(result, Refused):
            if uncompiled is not None:
                name = result.target.name
                called = await run.get_by_name(called_kernels(run.session.engine, view, name))
                uncompiled.append(
                    {
                        "function": address.function,
                        "target": name,
                        "error": result.trouble.message,
                        "pallas_kernels": pallas.record(called),
                        "inputs": inputs.record(view),
                        "python": run.python(address.path),
                    }
                )
                continue
            where = one_line(f"{address.function} on {result.target.name}")
            printer.labelled(where, "bold", result.trouble.message)
            return []
        results.append(result)
    return results


def _print_pallas(printer: Printer, called: CalledKernels) -> None:
    """Print the grid, blocks and memory of each Pallas kernel."""
    for kernel, line in zip(called.kernels, called.lines, strict=True):
        printer.print_line(pallas.title(kernel, called.target), "bold")
        if line:
            printer.print_line(line, "dim")
        blocks = list(pallas.rows(kernel, called.target))
        print_rows(printer, pallas.COLUMNS, blocks[:MOST_ROWS], "lllrlr", len(blocks))
        printer.print()


def _records(
    address: Address,
    after: Sequence[LocatedFigures],
    called: Sequence[CalledKernels],
    against: Address | None,
    before: Sequence[LocatedFigures],
    python: dict[str, str] | None,
) -> list[dict[str, object]]:
    """Return the objects that `--json` prints, one for each target."""
    records = [
        {
            **figures(kernels, address.function),
            "pallas_kernels": pallas.record(blocks),
            "inputs": inputs.record(kernels.view),
            "python": python,
        }
        for kernels, blocks in zip(after, called, strict=True)
    ]
    if not before or against is None:
        return records
    return [
        {**record, "against": figures(kernels, against.name)}
        for record, kernels in zip(records, before, strict=True)
    ]


def _print(
    printer: Printer,
    form: _Form,
    address: Address,
    kernels: LocatedFigures,
    before: LocatedFigures | None,
) -> None:
    """Print the kernels of a function, as a document or as a table with a comparison."""
    match form:
        case "dot":
            print_document(dot(kernels.graph, lambda path: one_line(kernels.source(path))))
        case "svg":
            title = f"{address.function}: {kernels.headline}"
            names = kernels.lowered.parameters
            print_document(svg(kernels.graph, kernels.source, title=title, inputs=names))
        case "hlo":
            print_document(kernels.compiled.hlo)
        case _:
            _print_summary(printer, address, kernels)
            if form == "modules" or kernels.graph.kernel_count > FEW:
                _print_modules(printer, address, kernels)
            if form != "modules":
                _print_table(printer, kernels)
            _print_transfers(printer, kernels)
            _print_totals(printer, kernels)
            if before is not None:
                difference = change(before.compiled, kernels.compiled)
                printer.print(styled((difference, "bold")))
                printer.print()


def _print_summary(printer: Printer, address: Address, kernels: LocatedFigures) -> None:
    """Print the figures of the whole program, and notes."""
    compiled, target = kernels.compiled, kernels.target
    printer.print_line(f"{SIGN} {address.function}: {kernels.headline}", "bold")
    made_by = f"{kernels.origin}, jaxlib {compiled.jaxlib}"
    known = (*target.facts, *memory_lines(kernels), *program_notes.compile_lines(kernels))
    for note in (made_by, *known, *compiled.notes, *kernels.graph.notes):
        printer.print_line(note, "dim")
    printer.print()


def _print_modules(printer: Printer, address: Address, kernels: LocatedFigures) -> None:
    """Print a row for each function or module that kernels belong to."""
    shown = (
        (
            group_title(group, address.function),
            str(len(group.kernels)),
            str(kernels.graph.launches_of(group.kernels)),
            units.size(group.bytes),
            units.time(group.seconds) if group.seconds is not None else "",
        )
        for group in groups(kernels, _MOST_MODULES)
    )
    print_rows(printer, ("module", "kernels", "launches", "in + out", "≈ time"), shown, "lrrrr")
    printer.print()


def _print_table(printer: Printer, kernels: LocatedFigures) -> None:
    """Print a row for each kernel."""
    shown = [each.cells("  ") for each in rows(kernels, MOST_ROWS)]
    print_rows(printer, COLUMNS, shown, SIDES, kernels.graph.kernel_count)


def _print_transfers(printer: Printer, kernels: LocatedFigures) -> None:
    """Print a row for each transfer between the host and the device."""
    if not (transfers := host_transfers.rows(kernels)):
        return
    columns = host_transfers.COLUMNS
    sides = "".join("r" if title in ("bytes", "≥ time") else "l" for title in columns)
    printer.print()
    print_rows(printer, columns, transfers[:MOST_ROWS], sides, len(transfers))


def _print_totals(printer: Printer, kernels: LocatedFigures) -> None:
    """Print what follows the table: iterations of loops, and estimated times."""
    for line in (*program_notes.iterations(kernels), *program_notes.undecided(kernels)):
        printer.print_line(line, "dim")
    if time := _total(kernels):
        printer.print(styled((time, "dim")))
    if any(bounds(kernel, kernels.target) is not None for kernel in kernels.graph.kernels):
        source = "≈ time: roofline estimate from the chip's achievable rates, not a measurement"
        printer.print(styled((source, "dim")))
    printer.print()


def _total(kernels: LocatedFigures) -> str:
    """Return the estimate for the whole program, and what it excludes; empty if there is none."""
    estimated = total(kernels.graph, kernels.target)
    if estimated is None:
        return ""
    if estimated.is_lower_bound and estimated.seconds < units.SHORTEST:
        return ""  # almost nothing of it is known
    if not estimated.is_lower_bound:
        about = "≈ " if estimated.seconds >= units.SHORTEST else ""
        return f"total {about}{units.time(estimated.seconds)}"
    times = [bounds(kernel, kernels.target) for kernel in kernels.graph.kernels]
    unknown = [str(index + 1) for index, each in enumerate(times) if each is None]
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    numbers = ", ".join(unknown[:_NAMED])
    plural = "s" if len(unknown) > 1 else ""
    reasons = [f"no estimate for kernel{plural} {numbers}{more}"] if unknown else []
    if not kernels.graph.trips_known:
        reasons.append("loops of unknown length excluded")
    if kernels.graph.host_transfers:
        reasons.append("transfers at the rate of the link to the host")
    if any(each is not None and not each.is_certain for each in times):
        longest = f", up to {units.time(estimated.at_most)}" if estimated.at_most else ""
        reasons.append(f"scatters take longer where indices are equal{longest}")
    if not reasons:
        reasons.append("collectives that overlap with other kernels may take longer")
    return f"total ≥ {units.time(estimated.seconds)} ({'; '.join(reasons)})"
