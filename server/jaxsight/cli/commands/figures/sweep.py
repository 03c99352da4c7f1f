"""Show how figures grow with sizes: `jaxsight sweep FILE:FUNCTION B=1..4096`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.options import (
    Allow,
    AsJson,
    InputsChoice,
    Python,
    SetName,
    Target,
    WhichInputs,
)
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.notes import print_inputs, print_notes
from jaxsight.cli.output.printing import Printer, print_document, print_json, print_rows, styled
from jaxsight.cli.parameters import Option, Positional
from jaxsight.cli.sources.arguments import Address, parse_address, read_source
from jaxsight.cli.traced_view import trace_view
from jaxsight.features.inlay_hints.kernels import SIGN
from jaxsight.files import reading
from jaxsight.sweeps import table
from jaxsight.sweeps.picture import svg
from jaxsight.sweeps.points import BadSizes, Sweep, SweepPoint, SweptSize, combined, parse, written
from jaxsight.targets.target import parse as parse_target
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.wire.messages.replies import Traced

FunctionsAndSizes = Annotated[
    list[str],
    Positional(
        metavar="FILE:FUNCTION|SIZE=VALUES",
        help="Functions, and sizes of their example inputs with values: [cyan]B=1..4096[/cyan], "
        "[cyan]L=128,256[/cyan], [cyan]n=8..64:8[/cyan] for steps of 8. A size is one that "
        "[cyan]where[/cyan] names, a dimension that the function names, or a whole number that is "
        "an argument. Of a range with many values, each is about twice the one before.",
    ),
]

MemoryLimit = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="AMOUNT",
        help="Memory that the largest size must fit in, e.g. [cyan]60GiB[/cyan].",
        show_default="the target's",
    ),
]

FindLargest = Annotated[
    bool,
    Option(
        "--largest/--no-largest",
        help="Find the largest first size that fits in memory, with at most 8 further compiles.",
    ),
]

Measures = Annotated[
    bool,
    Option("--measure", help="Also run the function with each size on this machine."),
]

AsCsv = Annotated[bool, Option("--csv", help="Print CSV.")]

SvgFile = Annotated[
    Path | None, Option("--svg", metavar="FILE", help="Write the curves to an SVG file.")
]

Plotted = Annotated[
    table.FigureName, Option("--plot", help="The figure that [cyan]--svg[/cyan] draws.")
]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What is swept, and for which target."""

    swept: Sequence[SweptSize]
    target: str | None
    memory: int | None
    largest: bool
    measured: bool


@command
async def sweep(
    arguments: FunctionsAndSizes,
    target: Target = None,
    set_name: SetName = None,
    memory: MemoryLimit = None,
    largest: FindLargest = True,
    measured: Measures = False,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    svg_file: SvgFile = None,
    plotted: Plotted = "temp",
) -> int:
    """Show how a function's memory, kernels and estimated time grow with its sizes.

    The function is traced and compiled with each size. It is run with [cyan]--measure[/cyan] only;
    without it, the target device need not be present.

    [bold]Examples[/bold]

        jaxsight sweep model.py:loss B=1..4096 --target cuda:h100
        jaxsight sweep model.py:loss L=128,256,512 B=8,16
        jaxsight sweep fft.py:loop fft.py:unrolled n=1..9 --svg memory.svg
    """
    addresses, swept = _parsed(arguments)
    capacity = units.parse_size(memory) if memory is not None else None
    if memory is not None and capacity is None:
        raise CommandError(f"invalid amount of memory {memory!r}; write e.g. 60GiB")
    options = SweepOptions(
        swept, target, int(capacity) if capacity is not None else None, largest, measured
    )
    printer = Printer(wrap=not (as_json or as_csv))
    notes = Printer(stderr=True) if as_json or as_csv else printer
    sweeps: list[Sweep] = []
    paths = {address.path for address in addresses}
    async with start_run(paths, python, allow, which, targets=[target]) as run:
        for address in addresses:
            view = await trace_view(run, address, read_source(address.path), set_name, printer)
            if not isinstance(view.answer.reply, Traced):
                return FOUND
            print_inputs(notes, view)
            print_notes(notes, str(address.path), view.caveats)
            sweeps.append(await _swept(run, address, options))
            if not (as_json or as_csv):
                _print(printer, sweeps[-1])
    if as_json:
        records = [table.record(each) for each in sweeps]
        print_json(records[0] if len(records) == 1 else records)
    elif as_csv:
        print_document(table.as_csv(sweeps))
    if svg_file is not None:
        with failing_on(LookupError):
            write_file(svg_file, svg(sweeps, table.FIGURES[plotted]).encode())
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


async def _swept(run: CommandRun, address: Address, options: SweepOptions) -> Sweep:
    def show(point: SweepPoint, number: int, count: int) -> None:
        done = "looking for the largest size" if number == count else f"{number} of {count}"
        run.show_step(f"{address.function}: {written(point.sizes)} compiled ({done})")

    run.show_step(f"compiling {address.function} with other sizes")
    with failing_on(BadSizes):
        return await run.get_by_name(
            run.session.sweep(
                str(address.path),
                address.function,
                options.swept,
                options.target,
                memory=options.memory,
                largest=options.largest,
                measured=options.measured,
                on_point=show,
            )
        )


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
        columns = [size.name for size in found.swept] + [figure.column for figure in figures]
        print_rows(printer, columns, table.rows(found), "r" * len(columns))
        printer.print()
    for line in table.remarks(found):
        printer.print(one_line(line))
    if table.FIGURES["time"] in figures:
        source = "≈ time: roofline estimate from the chip's achievable rates, not a measurement"
        printer.print(styled((source, "dim")))
    printer.print()
