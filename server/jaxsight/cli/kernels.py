"""`jaxsight kernels FILE:FUNCTION`: what a function is on a device, in the terminal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.running import Running, running
from jaxsight.cli.sources import Address, read_source
from jaxsight.cli.viewing import viewed
from jaxsight.compiler.drawing import NoGraphviz, dot, drawn_by_graphviz
from jaxsight.compiler.roofline import estimate
from jaxsight.engine import kernels as words
from jaxsight.engine.compiling import Result
from jaxsight.engine.kernels import Kernels
from jaxsight.tracer.protocol import Traced
from jaxsight.workers.compilers import Trouble

_MOST = 200
"""Kernels that a table lists."""


async def kernels(
    address: Address,
    *,
    targets: Sequence[str],
    set_name: str | None,
    against: Address | str | None,
    form: str,
    python: str | None,
) -> int:
    """Print the kernels of a function; the exit status, 1 when there is nothing compiled.

    Args:
        targets: by name; the project's when empty.
        against: another function to compare with, or a git revision of the same one.
        form: `table`, `json`, `dot`, `svg` or `hlo`.

    Raises:
        CommandError: there is no such function, it has no example inputs, or no tracer can be had.
    """
    console = Console(highlight=False, soft_wrap=form != "table")
    async with running([], {"python": python} if python else {}) as run:
        found = await _results(run, address, targets, set_name, console)
        before = []
        if isinstance(against, str):
            old = committed(address.path, against)
            before = await _results(run, address, targets, set_name, console, old)
        elif against is not None:
            before = await _results(run, against, targets, None, console)
    if not found or (against and not before):
        return FOUND
    if form == "json":
        records = [words.record(each, address.function) for each in found]
        if before:
            records = [
                {**record, "against": words.record(other, _named(against, address))}
                for record, other in zip(records, before, strict=True)
            ]
        console.print(Text(json.dumps(records[0] if len(records) == 1 else records, indent=2)))
        return 0
    for index, each in enumerate(found):
        if form in ("dot", "svg"):
            drawn = dot(each.graph, each.source)
            console.print(Text(drawn if form == "dot" else svg(drawn)))
        elif form == "hlo":
            console.print(Text(each.compiled.hlo.rstrip("\n")))
        else:
            _print(console, address, each)
            if before:
                _compare(console, before[index], each)
    return 0


async def _results(
    run: Running,
    address: Address,
    targets: Sequence[str],
    set_name: str | None,
    console: Console,
    text: str | None = None,
) -> list[Kernels]:
    """The kernels on each target; what is wrong has been printed where there are none.

    Args:
        text: of the file, where it is not what is on disk.
    """
    source = read_source(address.path) if text is None else text
    view = await viewed(run, address, source, set_name, console)
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
            _tell(console, address, result)
            return []
        found.append(made)
    return found


def svg(drawn: str) -> str:
    """A graph as a picture.

    Raises:
        CommandError: Graphviz is not installed, or does not draw it.
    """
    try:
        return drawn_by_graphviz(drawn)
    except NoGraphviz as error:
        raise CommandError(str(error)) from error


def committed(path: Path, revision: str) -> str:
    """A file's text in a git revision.

    Raises:
        CommandError: there is no git, no such revision, or the file is not in it.
    """
    command = ["git", "show", f"{revision}:./{path.name}"]
    try:
        done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    except OSError as error:
        raise CommandError(f"git does not run: {error}") from error
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise CommandError(f"{path.name} cannot be had from {revision}: {words}")
    return done.stdout.decode("utf-8", "replace")


def _named(against: Address | str | None, address: Address) -> str:
    return against.function if isinstance(against, Address) else f"{address.function} of {against}"


def _tell(console: Console, address: Address, result: Result) -> None:
    assert isinstance(result.outcome, Trouble)
    console.print(
        Text.assemble(
            (address.function, "bold"),
            f" on {result.target.name}: ",
            (result.outcome.message, "red"),
        )
    )


def _print(console: Console, address: Address, kernels: Kernels) -> None:
    compiled = kernels.compiled
    console.print(
        Text(f"{words.SIGN} {address.function}: {words.headline(compiled, kernels.target)}", "bold")
    )
    facts = [f"{kernels.target.title}, compiled {words.how(compiled)}, jaxlib {compiled.jaxlib}"]
    if size := words.folded(compiled):
        facts.append(f"constants folded into the executable: {words.short_size(size)}")
    for note in (*facts, *compiled.notes, *kernels.graph.notes):
        console.print(Text(note, "dim"))
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title, justify in (
        ("", "right"),
        ("kernel", "left"),
        ("launches", "right"),
        ("in", "right"),
        ("out", "right"),
        ("≈ time", "right"),
        ("ends because of", "left"),
        ("lines", "left"),
    ):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    shown = kernels.graph.kernels[:_MOST]
    for index, kernel in enumerate(shown):
        seconds = estimate(kernel, kernels.target)
        table.add_row(
            str(index + 1),
            "  " * len(kernel.loops) + kernel.what,
            str(kernel.launches),
            words.short_size(kernel.bytes_in),
            words.short_size(kernel.bytes_out),
            _time(seconds),
            kernels.reason(kernel),
            ", ".join(map(str, kernels.lines(kernel)[:8])),
        )
    console.print(table)
    if len(shown) < kernels.graph.kernel_count:
        console.print(
            Text(f"and {kernels.graph.kernel_count - len(shown)} more (--json has all)", "dim")
        )
    for loop in kernels.graph.loops:
        trips = "an unknown number of times" if loop.trips is None else f"{loop.trips} times"
        console.print(Text(f"loop {loop.name} goes round {trips}", "dim"))
    if any(estimate(kernel, kernels.target) is not None for kernel in shown):
        console.print(
            Text("≈ time: a roofline estimate from the chip's figures, not a measurement", "dim")
        )
    console.print()


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _compare(console: Console, before: Kernels, after: Kernels) -> None:
    """What changed, as `kernels 7 → 5`."""
    console.print(Text(words.change(before.compiled, after.compiled), "bold"))
    console.print()
