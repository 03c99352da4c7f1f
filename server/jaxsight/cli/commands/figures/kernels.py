"""Print the kernels of a function on a target: `jaxsight kernels FILE:FUNCTION`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

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
from jaxsight.cli.parameters import Option
from jaxsight.cli.sources.arguments import (
    Address,
    parse_address,
    parse_against,
    read_committed,
)
from jaxsight.cli.traced_view import trace_view
from jaxsight.drawing.dot import dot
from jaxsight.drawing.kernel_picture import svg
from jaxsight.features.findings import inputs
from jaxsight.features.inlay_hints.kernels import SIGN
from jaxsight.features.kernels import pallas
from jaxsight.features.kernels.pallas import CalledKernels
from jaxsight.features.kernels.record import record as figures
from jaxsight.figures import compile_time, host_transfers, launches, modules
from jaxsight.figures.program_notes import change, memory_lines
from jaxsight.figures.rows import COLUMNS, SIDES, rows
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.targets.roofline import bounds, total
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.wire.messages.replies import Traced

_NAMED = 5
"""Kernels without an estimate that a line names, a choice: more would wrap."""
_MOST_MODULES = 40
"""Functions and modules in a table, a choice: a screen. Those inside the last are added up."""

ByModule = Annotated[
    bool,
    Option(
        "--by-module",
        help="Print a row for each function or module instead of each kernel.",
    ),
]

AsDot = Annotated[bool, Option("--dot", help="Print the kernel graph in Graphviz DOT format.")]

AsSvg = Annotated[bool, Option("--svg", help="Print the kernel graph as SVG.")]

AsHlo = Annotated[bool, Option("--hlo", help="Print the optimized HLO.")]


_Form = Literal["json", "dot", "svg", "hlo", "modules", "table"]


@command
async def kernels(
    function: Function,
    targets: Targets = None,
    set_name: SetName = None,
    against: Against = None,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    by_module: ByModule = False,
    as_json: AsJson = False,
    as_dot: AsDot = False,
    as_svg: AsSvg = False,
    as_hlo: AsHlo = False,
    stdin_filename: StdinFunction = None,
) -> int:
    """Show the kernels XLA generates for a function; the target device need not be present.

    The function is traced with its example inputs and compiled, but not run.

    [bold]Examples[/bold]

        jaxsight kernels model.py:loss --target cuda:h100
        jaxsight kernels model.py:fast --against model.py:slow
        jaxsight kernels model.py:loss --against HEAD
        jaxsight kernels model.py:loss --svg > loss.svg
    """
    complete = not (as_dot or as_svg or as_hlo)
    forms: dict[_Form, bool] = {"json": as_json, "dot": as_dot, "svg": as_svg, "hlo": as_hlo}
    table: _Form = "modules" if by_module else "table"
    form = next((name for name, is_requested in forms.items() if is_requested), table)
    address, baseline = parse_address(function, stdin_filename), parse_against(against)
    printer = Printer(wrap=form == table)
    paths = [address.path, *([baseline.path] if isinstance(baseline, Address) else [])]
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
        if isinstance(baseline, str):
            old = read_committed(address.path, baseline)
            before = await _results(run, address, targets or (), set_name, printer, complete, old)
        elif baseline is not None:
            before = await _results(run, baseline, targets or (), None, printer, complete)
        traced_by = run.python(address.path)
        called = [
            await run.get_by_name(run.session.pallas_kernels(each.view, each.target.name))
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
    if before and isinstance(baseline, Address):
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
    text: str | None = None,
    *,
    blocks: bool = False,
    uncompiled: list[dict[str, object]] | None = None,
) -> list[LocatedFigures]:
    """Return the kernels on each target; if there are none, the error has been printed.

    Args:
        text: the file's text, if it is not that on disk.
        blocks: print the blocks of Pallas kernels, which are known before anything is compiled.
        uncompiled: takes, as JSON, what is known of the function on targets that it is not compiled
            for. By default the error is printed, and ends it.
    """
    source = address.read() if text is None else text
    view = await trace_view(run, address, source, set_name, printer)
    if not isinstance(view.answer.reply, Traced):
        return []
    await run.get(run.session.name_sizes(view))
    results = []
    for target in targets or (None,):
        if blocks:
            _print_pallas(printer, await run.get_by_name(run.session.pallas_kernels(view, target)))
        run.show_step(f"compiling {address.function}" + (f" for {target}" if target else ""))
        view, result = await run.get_by_name(
            run.session.kernels(str(address.path), address.function, target, complete=complete)
        )
        if isinstance(result, Refused):
            if uncompiled is not None:
                name = result.target.name
                called = await run.get_by_name(run.session.pallas_kernels(view, name))
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
    against: Address | str | None,
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
    if not before:
        return records
    name = against.function if isinstance(against, Address) else f"{address.function} of {against}"
    return [
        {**record, "against": figures(kernels, name)}
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
            if form == "modules" or kernels.graph.kernel_count > modules.FEW:
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
    known = (*target.facts, *memory_lines(kernels), *compile_time.lines(kernels))
    for note in (made_by, *known, *compiled.notes, *kernels.graph.notes):
        printer.print_line(note, "dim")
    printer.print()


def _print_modules(printer: Printer, address: Address, kernels: LocatedFigures) -> None:
    """Print a row for each function or module that kernels belong to."""
    groups = (
        (
            modules.title(group, address.function),
            str(len(group.kernels)),
            str(kernels.graph.launches_of(group.kernels)),
            units.size(group.bytes),
            units.time(group.seconds) if group.seconds is not None else "",
        )
        for group in modules.groups(kernels, _MOST_MODULES)
    )
    print_rows(printer, ("module", "kernels", "launches", "in + out", "≈ time"), groups, "lrrrr")
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
    for line in (*launches.iterations(kernels), *launches.undecided(kernels)):
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
