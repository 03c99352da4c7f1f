"""Print measured times of a function: `jaxsight measure FILE:FUNCTION`."""

from __future__ import annotations

from dataclasses import asdict

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.notes import print_header
from jaxsight.cli.output.printing import MOST_ROWS, Printer, print_json, print_rows
from jaxsight.cli.sources.arguments import Address, parse_address, parse_against, paths_of
from jaxsight.cli.traced_view import trace_view
from jaxsight.features import inputs
from jaxsight.features.measuring import timing
from jaxsight.features.measuring.actions import measured_function
from jaxsight.features.measuring.timing import MatchedTimes, record, times_record
from jaxsight.figures.collectives import kernel_title
from jaxsight.queries.measurements import NotMeasured
from jaxsight.targets.achieved import MeasuredKernel
from jaxsight.text import units
from jaxsight.wire.messages.measuring import MeasuringLimits
from jaxsight.wire.messages.replies import Stage

_LINES = 8
"""Lines of a kernel in a table: more would wrap."""


@command
async def measure(
    function: common.Function,
    *,
    target: str | None = None,
    set_name: common.SetName = None,
    repeat: int | None = None,
    against: common.Against = None,
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    as_json: common.AsJson = False,
) -> int:
    """Run a function on this machine's device, and show what its kernels take.

    The function is compiled with [bold]jax.jit[/bold] and called with its example inputs. Arrays
    that only a type is known of are random. One measurement runs at a time.

    [bold]Examples[/bold]

        jaxsight measure model.py:loss
        jaxsight measure model.py:fast --against model.py:slow
        jaxsight measure model.py:loss --against HEAD --json

    Args:
        target (--target -t TARGET): Device to run on: [cyan]cpu[/cyan], [cyan]cuda[/cyan],
            [cyan]rocm[/cyan], [cyan]tpu[/cyan], or that of another machine:
            [cyan]ssh://HOST/cuda[/cyan]. [default: its GPU or TPU, else cpu]
        repeat (RUNS>=1): Number of timed runs. [default: until the median is known to 1 %, at most
            5 s]
    """
    address = parse_address(function)
    baseline = parse_against(against, address)
    printer = Printer(wrap=not as_json)
    paths = paths_of(address, baseline)
    async with start_run(paths, python, allow, which, targets=[target]) as run:
        found = await _found(run, address, baseline, target, set_name, repeat or 0, printer)
        traced_by = run.python(address.path)
    if found is None:
        return FOUND
    name = baseline.name if baseline is not None else ""
    if as_json:
        about = {"inputs": inputs.record(found.kernels.view), "python": traced_by}
        print_json({**record(found, address.function), **_against(found, name), **about})
        return 0
    print_header(printer, found.kernels.view, sizes=True)
    _print(printer, found, address.function, name)
    return 0


async def _found(
    run: CommandRun,
    address: Address,
    baseline: Address | None,
    target: str | None,
    set_name: str | None,
    repeat: int,
    printer: Printer,
) -> MatchedTimes | None:
    """Measure a function; if it or the one to compare with is not traced, the error is printed.

    Raises:
        CommandError: it was not measured.
    """
    other = None
    if baseline is not None:
        its_set = set_name if baseline.revision else None
        if (other := await trace_view(run, baseline, its_set, printer)) is None:
            return None
    if await trace_view(run, address, set_name, printer) is None:
        return None

    def show(stage: Stage) -> None:
        run.show_step(f"{address.function}: {timing.step(stage)}")

    run.show_step(f"compiling {address.function}")
    measuring = measured_function(
        run.session.engine,
        str(address.path),
        address.function,
        target,
        against=other,
        limits=MeasuringLimits(runs=repeat),
        on_stage=show,
    )
    with failing_on(NotMeasured):
        return await run.get_by_name(measuring)


def _against(found: MatchedTimes, name: str) -> dict[str, object]:
    """Return the other function for JSON, and how much longer it takes."""
    measured = found.measurement.measured
    if measured.other is None or measured.ratio is None:
        return {}
    other = {"function": name, **times_record(measured.other)}
    return {"against": {**other, "ratio": asdict(measured.ratio)}}


def _print(printer: Printer, found: MatchedTimes, function: str, other: str) -> None:
    """Print the times of the whole program, a table of kernels, and what may disturb."""
    measurement = found.measurement
    target, device = measurement.target.name, measurement.conditions.device_kind
    headline = timing.headline(measurement.times)
    estimated = found.estimate_seconds
    beside = f", estimated {units.about(estimated)}" if estimated is not None else ""
    printer.print_line(f"{units.MEASURED} {function}: {headline}{beside}", "bold")
    on = f"{target} ({device})" if device.lower() != target else target
    made_by = f"measured on {on}, JAX {measurement.conditions.jax}"
    for note in (made_by, *timing.facts(measurement)):
        printer.print_line(note, "dim")
    printer.print()
    if found.rows:
        columns = ("", "kernel", "calls", "time", "share", "≈ time", "ratio", "GB/s", "GFLOP/s")
        rows = [_row(found, row) for row in found.rows[:MOST_ROWS]]
        print_rows(printer, (*columns, "lines"), rows, "rlrrrrrrrl", len(found.rows))
        printer.print()
    measured = measurement.measured
    if measured.other is not None and measured.ratio is not None:
        printer.print_line(f"{other}: {timing.headline(measured.other)}", "bold")
        printer.print_line(timing.compared(measured.ratio, function, other), "bold")


def _row(found: MatchedTimes, row: MeasuredKernel[int]) -> tuple[str, ...]:
    kernel = found.kernels.graph.kernels[row.index] if row.index is not None else None
    return (
        str(row.index + 1) if row.index is not None else "",
        kernel_title(kernel) if kernel is not None else f"{row.name} (no kernel)",
        f"{row.calls:g}",
        units.time(row.seconds),
        units.percent(row.share),
        units.time(row.estimate_seconds) if row.estimate_seconds is not None else "",
        f"{row.ratio:.2f}" if row.ratio is not None else "",
        _rate(row.bytes_per_second, row.bandwidth_share),
        _rate(row.flops_per_second, row.arithmetic_share),
        ", ".join(map(str, row.lines[:_LINES])),
    )


def _rate(per_second: float | None, of_peak: float | None) -> str:
    """Return `1.9e3 (57 %)`: billions in a second, with the share of the chip's peak if known."""
    if per_second is None:
        return ""
    share = f" ({units.percent(of_peak)})" if of_peak is not None else ""
    return f"{per_second / 1e9:.3g}{share}"
