"""Print the kernels of a function on a target: `jaxsight kernels FILE:FUNCTION`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.notes import print_notes
from jaxsight.cli.printing import Printer, Table, cells, document, print_json, styled
from jaxsight.cli.running import Running, running
from jaxsight.cli.sources import Address, read_source
from jaxsight.cli.viewing import viewed
from jaxsight.features import kernel_report as words
from jaxsight.features.kernel_report import Kernels
from jaxsight.library.drawing import NoGraphviz, dot, drawn_by_graphviz
from jaxsight.queries.compile_cache import Result
from jaxsight.targets.roofline import estimate, total
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.compilers import Trouble

_MOST = 200
"""Maximum number of kernels in a table."""


async def kernels(
    address: Address,
    *,
    targets: Sequence[str],
    set_name: str | None,
    against: Address | str | None,
    form: str,
    python: str | None,
    allow: Sequence[str] = (),
) -> int:
    """Print the kernels of a function and return the exit status, 1 if it was not compiled.

    Args:
        targets: names of targets; empty for the project's.
        against: another function to compare with, or a git revision.
        form: `table`, `json`, `dot`, `svg` or `hlo`.
        allow: hosts and interpreters that the project may use.

    Raises:
        CommandError: the function does not exist or has no example inputs, or no tracer starts.
    """
    printer = Printer(wrap=form == "table")
    paths = [address.path, *([against.path] if isinstance(against, Address) else [])]
    async with running(paths, {"python": python} if python else {}, allow) as run:
        found = await _results(run, address, targets, set_name, printer)
        before = []
        if isinstance(against, str):
            old = committed(address.path, against)
            before = await _results(run, address, targets, set_name, printer, old)
        elif against is not None:
            before = await _results(run, against, targets, None, printer)
        traced_by = run.python(address.path)
    if not found or (against and not before):
        return FOUND
    if form == "json":
        records = [{**words.record(each, address.function), "python": traced_by} for each in found]
        if before:
            records = [
                {**record, "against": words.record(other, _named(against, address))}
                for record, other in zip(records, before, strict=True)
            ]
        print_json(records[0] if len(records) == 1 else records)
        return 0
    # Graphs and HLO are input of other programs: notes go to stderr.
    notes = printer if form == "table" else Printer(stderr=True)
    print_notes(notes, str(address.path), found[0].view.caveats)
    if before and isinstance(against, Address):
        print_notes(notes, str(against.path), before[0].view.caveats)
    for index, each in enumerate(found):
        if form in ("dot", "svg"):
            drawn = _drawn(each)
            document(drawn if form == "dot" else svg(drawn))
        elif form == "hlo":
            document(each.compiled.hlo)
        else:
            _print(printer, address, each)
            if before:
                _compare(printer, before[index], each)
    return 0


async def _results(
    run: Running,
    address: Address,
    targets: Sequence[str],
    set_name: str | None,
    printer: Printer,
    text: str | None = None,
) -> list[Kernels]:
    """Return the kernels on each target; if there are none, the error has been printed.

    Args:
        text: the file's text, if it is not that on disk.
    """
    source = read_source(address.path) if text is None else text
    view = await viewed(run, address, source, set_name, printer)
    if not isinstance(view.answer.reply, Traced):
        return []
    found = []
    for target in targets or (None,):
        run.say(f"compiling {address.function}" + (f" for {target}" if target else ""))
        seen, result = await run.asked(
            run.session.kernels(str(address.path), address.function, target, set_name)
        )
        made = Kernels.of(seen, result)
        if made is None:
            _tell(printer, address, result)
            return []
        found.append(made)
    return found


def _drawn(kernels: Kernels) -> str:
    """Return the graph as DOT, with escapes for characters that no picture can contain."""
    return dot(kernels.graph, lambda path: one_line(kernels.source(path)))


def svg(drawn: str) -> str:
    """Return a graph as SVG.

    Raises:
        CommandError: Graphviz is not installed, or fails.
    """
    try:
        return drawn_by_graphviz(drawn)
    except NoGraphviz as error:
        raise CommandError(str(error)) from error


def committed(path: Path, revision: str) -> str:
    """Return a file's text in a git revision.

    Raises:
        CommandError: git is not installed, or there is no such revision or file.
    """
    command = ["git", "show", f"{revision}:./{path.name}"]
    try:
        done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    except OSError as error:
        raise CommandError(f"cannot run git: {error}") from error
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise CommandError(f"cannot read {path.name} at {revision}: {words}")
    return done.stdout.decode("utf-8", "replace")


def _named(against: Address | str | None, address: Address) -> str:
    return against.function if isinstance(against, Address) else f"{address.function} of {against}"


def _tell(printer: Printer, address: Address, result: Result) -> None:
    assert isinstance(result.outcome, Trouble)
    where = f"{address.function} on {result.target.name}"
    printer.labelled(one_line(where), "bold", result.outcome.message)


def _print(printer: Printer, address: Address, kernels: Kernels) -> None:
    compiled = kernels.compiled
    headline = words.headline(compiled, kernels.target)
    printer.print(styled((one_line(f"{words.SIGN} {address.function}: {headline}"), "bold")))
    facts = [f"{kernels.target.title}, compiled {words.how(compiled)}, jaxlib {compiled.jaxlib}"]
    for note in (*facts, *words.memory_lines(kernels), *compiled.notes, *kernels.graph.notes):
        printer.print(styled((one_line(note), "dim")))
    printer.print()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title, justify in (
        ("", "right"),
        ("kernel", "left"),
        ("launches", "right"),
        ("in", "right"),
        ("out", "right"),
        ("≈ time", "right"),
        ("fusion boundary", "left"),
        ("lines", "left"),
    ):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    shown = kernels.graph.kernels[:_MOST]
    for index, kernel in enumerate(shown):
        seconds = estimate(kernel, kernels.target)
        row = cells(
            str(index + 1),
            "  " * len(kernel.loops) + kernel.what,
            str(kernel.launches),
            units.size(kernel.bytes_in),
            units.size(kernel.bytes_out),
            units.time(seconds) if seconds is not None and kernel.launches else "",
            kernels.reason(kernel),
            _lines(kernels, kernel),
        )
        table.add_row(*row)
    printer.print(table)
    if len(shown) < kernels.graph.kernel_count:
        more = kernels.graph.kernel_count - len(shown)
        printer.print(styled((f"and {more} more (use --json to list all)", "dim")))
    for line in (*words.iterations(kernels), *words.undecided(kernels)):
        printer.print(styled((one_line(line), "dim")))
    if time := _total(kernels):
        printer.print(styled((time, "dim")))
    if any(estimate(kernel, kernels.target) is not None for kernel in shown):
        source = "≈ time: roofline estimate from the chip's specification, not a measurement"
        printer.print(styled((source, "dim")))
    printer.print()


def _total(kernels: Kernels) -> str:
    """Return the estimate for the whole program, and what it excludes; empty if there is none."""
    estimated = total(kernels.graph, kernels.target)
    if estimated is None:
        return ""
    if estimated.is_lower_bound and estimated.seconds < units.SHORTEST:
        return ""  # almost nothing of it is known
    if not estimated.is_lower_bound:
        about = "≈ " if estimated.seconds >= units.SHORTEST else ""
        return f"total {about}{units.time(estimated.seconds)}"
    unknown = [
        str(index + 1)
        for index, kernel in enumerate(kernels.graph.kernels)
        if estimate(kernel, kernels.target) is None
    ]
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    numbers = ", ".join(unknown[:5])
    plural = "s" if len(unknown) > 1 else ""
    reasons = [f"no estimate for kernel{plural} {numbers}{more}"] if unknown else []
    if not kernels.graph.launches_known:
        reasons.append("loops of unknown length excluded")
    return f"total ≥ {units.time(estimated.seconds)} ({'; '.join(reasons)})"


def _lines(kernels: Kernels, kernel: Kernel) -> str:
    """Return the lines that a kernel computes (`9, 10`), or those of its users (`for 12`)."""
    if lines := kernels.lines(kernel)[:8]:
        return ", ".join(map(str, lines))
    fed = kernels.fed_lines(kernel)[:8]
    return f"for {', '.join(map(str, fed))}" if fed else ""


def _compare(printer: Printer, before: Kernels, after: Kernels) -> None:
    """Print the changes, such as `kernels 7 → 5`."""
    printer.print(styled((words.change(before.compiled, after.compiled), "bold")))
    printer.print()
