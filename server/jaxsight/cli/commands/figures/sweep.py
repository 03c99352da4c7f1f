"""Show how figures grow with sizes: `jaxsight sweep FILE:FUNCTION B=1..4096`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output import printing
from jaxsight.cli.output.notes import print_header
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.sources.arguments import Address, parse_address
from jaxsight.cli.traced_view import trace_view
from jaxsight.features import sweeps as sweeping
from jaxsight.features.inlay_hints.functions import SIGN
from jaxsight.files import reading
from jaxsight.sweeps import table
from jaxsight.sweeps.picture import svg
from jaxsight.sweeps.points import BadSizes, Sweep, SweepPoint, SweptSize, combined, parse, written
from jaxsight.targets.target import parse as parse_target
from jaxsight.text import units
from jaxsight.text.inert import one_line


@command
async def sweep(
    arguments: list[str],
    *,
    target: common.Target = None,
    set_name: common.SetName = None,
    memory: str | None = None,
    largest: bool = True,
    measured: bool = False,
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    as_json: common.AsJson = False,
    as_csv: bool = False,
    svg_file: Path | None = None,
    plotted: table.FigureName = "temp",
) -> int:
    """Show how a function's memory, kernels and estimated time grow with its sizes.

    The function is traced and compiled with each size. It is run with [cyan]--measure[/cyan] only;
    without it, the target device need not be present.

    [bold]Examples[/bold]

        jaxsight sweep model.py:loss B=1..4096 --target cuda:h100
        jaxsight sweep model.py:loss L=128,256,512 B=8,16
        jaxsight sweep fft.py:loop fft.py:unrolled n=1..9 --svg memory.svg

    Args:
        arguments (FILE:FUNCTION|SIZE=VALUES): Functions, and sizes of their example inputs with
            values: [cyan]B=1..4096[/cyan], [cyan]L=128,256[/cyan], [cyan]n=8..64:8[/cyan] for steps
            of 8. A size is one that [cyan]where[/cyan] names, a dimension that the function names,
            or a whole number that is an argument. Of a range with many values, each is about twice
            the one before.
        memory (AMOUNT): Memory that the largest size must fit in, e.g. [cyan]60GiB[/cyan].
            [default: the target's]
        largest (--largest/--no-largest): Find the largest first size that fits in memory, with at
            most 8 further compiles.
        measured (--measure): Also run the function with each size on this machine.
        as_csv (--csv): Print CSV.
        svg_file (--svg FILE): Write the curves to an SVG file.
        plotted (--plot): The figure that [cyan]--svg[/cyan] draws.
    """
    addresses, swept = _parsed(arguments)
    capacity = units.parse_size(memory) if memory is not None else None
    if memory is not None and capacity is None:
        raise CommandError(f"invalid amount of memory {memory!r}; write e.g. 60GiB")
    is_table = not (as_json or as_csv)
    printer = Printer(wrap=is_table)
    sweeps: list[Sweep] = []
    paths = {address.path for address in addresses}
    async with start_run(paths, python, allow, which, targets=[target]) as run:
        for address in addresses:
            view = await trace_view(run, address, set_name, printer)
            if view is None:
                return FOUND
            print_header(printer if is_table else Printer(stderr=True), view)
            run.show_step(f"compiling {address.function} with other sizes")
            with failing_on(BadSizes):
                found = await run.get_by_name(
                    sweeping.sweep(
                        run.session.engine,
                        str(address.path),
                        address.function,
                        swept,
                        target,
                        memory=int(capacity) if capacity is not None else None,
                        largest=largest,
                        measured=measured,
                        on_point=partial(_show, run, address.function),
                    )
                )
            sweeps.append(found)
            if is_table:
                _print(printer, found)
    if as_json:
        records = [table.record(each) for each in sweeps]
        printing.print_json(records[0] if len(records) == 1 else records)
    elif as_csv:
        printing.print_document(table.as_csv(sweeps))
    if svg_file is not None:
        with failing_on(LookupError):
            printing.write_file(svg_file, svg(sweeps, table.FIGURES[plotted]).encode())
    return 0 if any(point.is_compiled for each in sweeps for point in each.points) else FOUND


def _parsed(arguments: Sequence[str]) -> tuple[list[Address], list[SweptSize]]:
    """Return the functions and the sizes of a command line.

    Raises:
        CommandError: a size is not valid, a file does not exist, or one of both is missing.
    """
    addresses: list[Address] = []
    swept: list[SweptSize] = []
    with failing_on(BadSizes):
        for argument in arguments:
            file = argument.rpartition(":")[0]
            size = None if file and reading.is_file(file) else parse(argument)
            if size is not None:
                swept.append(size)
            else:
                addresses.append(parse_address(argument))
        if not addresses:
            raise CommandError("missing function: write FILE:FUNCTION, e.g. model.py:loss")
        if not swept:
            raise CommandError("missing sizes: write e.g. B=1..4096 or L=128,256")
        combined(swept)
    return addresses, swept


def _show(run: CommandRun, function: str, point: SweepPoint, number: int, count: int) -> None:
    done = "looking for the largest size" if number == count else f"{number} of {count}"
    run.show_step(f"{function}: {written(point.sizes)} compiled ({done})")


def _print(printer: Printer, found: Sweep) -> None:
    """Print the table of a function, and what follows from it."""
    target = parse_target(found.target)
    swept = " ".join(size.name for size in found.swept)
    title = f"{SIGN} {found.function} over {swept} · {target.short}"
    printer.print_line(title, "bold")
    printer.print_line(target.title, "dim")
    printer.print()
    figures = table.columns(found) if any(point.is_compiled for point in found.points) else []
    if figures:
        columns = table.titles(found)
        printing.print_rows(printer, columns, table.rows(found), "r" * len(columns))
        printer.print()
    for line in table.remarks(found):
        printer.print(one_line(line))
    if table.FIGURES["time"] in figures:
        printer.print_line(printing.ROOFLINE, "dim")
    printer.print()
