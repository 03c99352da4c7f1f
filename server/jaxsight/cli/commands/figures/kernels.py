"""Print the kernels of a function on a target: `jaxsight kernels FILE:FUNCTION`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND
from jaxsight.cli.execution import command
from jaxsight.cli.output import notes, printing
from jaxsight.cli.output.printing import MOST_ROWS, Printer, print_rows
from jaxsight.cli.sources.arguments import Address, parse_address, parse_against, paths_of
from jaxsight.cli.traced_view import trace_view
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
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.roofline import bounds, total
from jaxsight.text import units
from jaxsight.text.inert import one_line

_NAMED = 5
"""Kernels without an estimate that a line names, a choice: more would wrap."""
_MOST_MODULES = 40
"""Functions and modules in a table, a choice: a screen. Those inside the last are added up."""

_Form = Literal["json", "svg", "hlo", "modules", "table"]


@command
async def kernels(
    function: common.Function,
    *,
    targets: common.Targets = None,
    set_name: common.SetName = None,
    against: common.Against = None,
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    by_module: bool = False,
    as_json: common.AsJson = False,
    as_svg: bool = False,
    as_hlo: bool = False,
    stdin_filename: common.StdinFunction = None,
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
        as_svg (--svg): Print the kernel graph as SVG.
        as_hlo (--hlo): Print the optimized HLO.
    """
    forms: dict[_Form, bool] = {"json": as_json, "svg": as_svg, "hlo": as_hlo}
    forms |= {"modules": by_module, "table": True}
    form = next(name for name, is_requested in forms.items() if is_requested)
    is_table, wanted = form in ("modules", "table"), targets or ()
    address = parse_address(function, stdin_filename)
    baseline = parse_against(against, address)
    printer = Printer(wrap=is_table)
    paths = paths_of(address, baseline)
    complete = not (as_svg or as_hlo)
    async with start_run(paths, python, allow, which, targets=wanted) as run:
        results = await _results(run, address, wanted, set_name, printer, complete, form)
        before: list[LocatedFigures] = []
        if baseline is not None:
            its_set = set_name if baseline.revision else None
            others = await _results(run, baseline, wanted, its_set, printer, complete)
            before = [each for _, each, _ in others if not isinstance(each, Refused)]
        traced_by = run.python(address.path)
    after = [each for _, each, _ in results if not isinstance(each, Refused)]
    is_refused = len(after) < len(results)
    if not results or (baseline and not before and not is_refused):
        return FOUND
    if form == "json":
        name = baseline.name if baseline is not None else ""
        records = list(_records(address, results, name, () if is_refused else before, traced_by))
        printing.print_json(records[0] if len(records) == 1 else records)
        return FOUND if is_refused else 0
    # Graphs and HLO are input of other programs: notes go to stderr.
    noted = printer if is_table else Printer(stderr=True)
    notes.print_header(noted, after[0].view, sizes=True)
    if before and baseline is not None and not baseline.revision:
        notes.print_notes(noted, before[0].view)
    for index, compiled in enumerate(after):
        _print(printer, form, address, compiled, before[index] if before else None)
    return 0


_Result = tuple[View, LocatedFigures | Refused, CalledKernels | None]
"""A function on a target, with its Pallas kernels if they are shown."""


async def _results(
    run: CommandRun,
    address: Address,
    targets: Sequence[str],
    set_name: str | None,
    printer: Printer,
    complete: bool,
    form: _Form | None = None,
) -> list[_Result]:
    """Return the kernels on each target; if there are none, the error has been printed.

    In JSON, there is an object for a target that the function is not compiled for. A table begins
    with the blocks of Pallas kernels, which are known before anything is compiled.
    """
    traced = await trace_view(run, address, set_name, printer)
    if traced is None:
        return []
    view, engine, path = traced, run.session.engine, str(address.path)
    await run.get(name_sizes(engine, view))
    results: list[_Result] = []
    for target in targets or (None,):
        called = None
        if form in ("json", "table"):
            called = await run.get_by_name(called_kernels(engine, view, target))
        if form == "table" and called is not None:
            _print_pallas(printer, called)
        run.show_step(f"compiling {address.function}" + (f" for {target}" if target else ""))
        view, result = await run.get_by_name(
            compiled_function(engine, path, address.function, target, complete=complete)
        )
        if isinstance(result, Refused) and form != "json":
            where = one_line(f"{address.function} on {result.target.name}")
            printer.labelled(where, "bold", result.trouble.message)
            return []
        results.append((view, result, called))
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
    results: Sequence[_Result],
    against: str,
    before: Sequence[LocatedFigures],
    python: dict[str, str] | None,
) -> Iterator[dict[str, object]]:
    """Yield the objects that `--json` prints, one for each target; those without kernels last."""
    known: dict[str, object]
    ordered = sorted(results, key=lambda each: isinstance(each[1], Refused))
    for index, (view, result, called) in enumerate(ordered):
        if isinstance(result, Refused):
            name, why = result.target.name, result.trouble.message
            known = {"function": address.function, "target": name, "error": why}
        else:
            known = figures(result, address.function)
        assert called is not None
        yield {
            **known,
            "pallas_kernels": pallas.record(called),
            "inputs": inputs.record(view),
            "python": python,
            **({"against": figures(before[index], against)} if before else {}),
        }


def _print(
    printer: Printer,
    form: _Form,
    address: Address,
    kernels: LocatedFigures,
    before: LocatedFigures | None,
) -> None:
    """Print the kernels of a function, as a document or as a table with a comparison."""
    match form:
        case "svg":
            title = f"{address.function}: {kernels.headline}"
            names = kernels.lowered.parameters
            printing.print_document(svg(kernels.graph, kernels.source, title=title, inputs=names))
        case "hlo":
            printing.print_document(kernels.compiled.hlo)
        case _:
            _print_summary(printer, address, kernels)
            if form == "modules" or kernels.graph.kernel_count > FEW:
                _print_modules(printer, address, kernels)
            if form != "modules":
                shown = [each.cells("  ") for each in rows(kernels, MOST_ROWS)]
                print_rows(printer, COLUMNS, shown, SIDES, kernels.graph.kernel_count)
            _print_transfers(printer, kernels)
            _print_totals(printer, kernels)
            if before is not None:
                printer.print_line(change(before.compiled, kernels.compiled), "bold")
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


def _print_transfers(printer: Printer, kernels: LocatedFigures) -> None:
    """Print a row for each transfer between the host and the device."""
    if transfers := host_transfers.rows(kernels):
        columns = host_transfers.COLUMNS
        sides = "".join("r" if title in ("bytes", "≥ time") else "l" for title in columns)
        printer.print()
        print_rows(printer, columns, transfers[:MOST_ROWS], sides, len(transfers))


def _print_totals(printer: Printer, kernels: LocatedFigures) -> None:
    """Print what follows the table: iterations of loops, and estimated times."""
    for line in (*program_notes.iterations(kernels), *program_notes.undecided(kernels)):
        printer.print_line(line, "dim")
    if time := _total(kernels):
        printer.print_line(time, "dim")
    if any(bounds(kernel, kernels.target) is not None for kernel in kernels.graph.kernels):
        printer.print_line(printing.ROOFLINE, "dim")
    printer.print()


def _total(kernels: LocatedFigures) -> str:
    """Return the estimate for the whole program, and what it excludes; empty if there is none."""
    estimated = total(kernels.graph, kernels.target)
    if estimated is None:
        return ""
    is_short = estimated.seconds < units.SHORTEST
    if not estimated.is_lower_bound:
        return f"total {'' if is_short else '≈ '}{units.time(estimated.seconds)}"
    if is_short:
        return ""  # almost nothing of it is known
    times = [bounds(kernel, kernels.target) for kernel in kernels.graph.kernels]
    unknown = [str(index + 1) for index, each in enumerate(times) if each is None]
    plural = "s" if len(unknown) > 1 else ""
    reasons = []
    if unknown:
        reasons.append(f"no estimate for kernel{plural} {units.some(unknown, _NAMED)}")
    if not kernels.graph.trips_known:
        reasons.append("loops of unknown length excluded")
    if kernels.graph.host_transfers:
        reasons.append("transfers at the rate of the link to the host")
    if any(each is not None and not each.is_certain for each in times):
        longest = f", up to {units.time(estimated.at_most)}" if estimated.at_most else ""
        reasons.append(f"scatters take longer where indices are equal{longest}")
    excluded = "; ".join(reasons) or "collectives that overlap with other kernels may take longer"
    return f"total ≥ {units.time(estimated.seconds)} ({excluded})"
