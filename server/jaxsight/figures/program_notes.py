"""A function's kernels in a line or a few: totals, memory, what is unknown, and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from jaxsight.figures import collectives, host_transfers
from jaxsight.figures.figures import AnyFigures
from jaxsight.figures.summary import (
    kernel_figure,
    launch_figure,
    moved_figure,
    moved_to_host,
    temporary_memory,
    xla_seconds,
)
from jaxsight.targets.chips import Gpu
from jaxsight.targets.roofline import together
from jaxsight.targets.target import CPU
from jaxsight.text import units
from jaxsight.text.units import count, interval, seconds, some
from jaxsight.wire.chunks import Span
from jaxsight.wire.kernel_graph import CALLBACK, Graph
from jaxsight.wire.messages.compiling import Compiled

SAME = "the same"


def memory_lines(kernels: AnyFigures) -> list[str]:
    """Return what a headline does not show of memory.

    That is constants, workspaces, donated buffers, and what moves to and from the host.

    For a program of several devices, the first line says that figures are those of one.
    """
    graph = kernels.graph
    lines: list[str] = []
    if kernels.compiled.devices > 1:
        lines += ["all figures are those of one device", *distribution_lines(kernels)]
    if size := graph.constant_bytes:
        of_it = graph.folded_bytes
        parts = f", of which {units.size(of_it)} folded" if of_it else ""
        on_device = "" if kernels.target.platform == CPU else " and in device memory"
        where = f"embedded in the executable{on_device}"
        lines.append(f"constants: {units.size(size)} {where}{parts}")
    if most := max((kernel.workspace for kernel in graph.kernels), default=0):
        lines.append(f"workspace: up to {units.size(most)} per library call, in the temporaries")
    lines += host_transfers.lines(kernels)
    return [*lines, *_undecided_lines(graph), *map(str, kernels.donations)]


def _undecided_lines(graph: Graph) -> Iterator[str]:
    """Yield what autotuning on the device may change of kernels and temporaries."""
    if matmuls := graph.kernels_for("cuBLAS"):
        needs = [f"{units.size(max(each.workspace or 0 for each in matmuls))} workspace"]
        if most := max(each.buffers for each in matmuls):
            needs.append(f"≤ {units.size(most)} that Triton fuses")
        number = count(len(matmuls), "matmul")
        yield f"autotuning may give {number} to cuBLAS on the device: {', '.join(needs)}"
    if graph.kernels_for("cuDNN"):
        yield "cuDNN chooses its algorithms on the device: their workspace is not known"


def distribution_lines(kernels: AnyFigures) -> list[str]:
    """Return the mesh, the communication and the memory of a program for several devices."""
    compiled = kernels.compiled
    lines = [f"mesh: {named}"] if (named := meshes(kernels)) else []
    lines += filter(None, [collectives.communication_line(kernels, moved_figure(kernels.graph))])
    sizes, chip = compiled.memory, kernels.target.chip
    parts = (sizes.arguments, sizes.outputs, sizes.temporaries, sizes.aliased)
    if compiled.is_complete and min(parts) >= 0:
        total = units.size(sizes.arguments + sizes.outputs + sizes.temporaries - sizes.aliased)
        of = f" of {units.size(chip.memory)}" if isinstance(chip, Gpu) else ""
        lines.append(f"memory per device: {total}{of} (arguments, outputs and temporaries)")
    return lines


def notes(figures: AnyFigures) -> list[str]:
    """Return what is said of a program below its kernels, but for how long it was compiled."""
    compiled = figures.compiled
    return [*memory_lines(figures), *undecided(figures), *compiled.notes, *compiled.graph.notes]


def meshes(kernels: AnyFigures) -> str:
    """Return the axes of a program's meshes, each once: `data=2, model=4`."""
    return "; ".join(dict.fromkeys(mesh.text for mesh in kernels.meshes if mesh.axes))


_COMPARED: Mapping[str, Callable[[Compiled], str]] = {
    "kernels": lambda program: kernel_figure(program.graph),
    "launches": lambda program: launch_figure(program.graph),
    "devices": lambda program: str(program.devices),
    "collectives": lambda program: str(len(program.graph.collectives)),
    "moved": lambda program: moved_figure(program.graph),
    "host transfers": lambda program: str(len(program.graph.offloads)),
    "to and from the host": lambda p: moved_to_host(p.graph, p.graph.offloads),
    "temp": temporary_memory,
    "folded": lambda program: units.size(program.graph.folded_bytes),
}
"""The figures that may change between two programs."""


def change(before: Compiled, after: Compiled) -> str:
    """Return the differences as `kernels 7 → 5 · temp 1 MiB → 0 B`, or `the same`.

    Amounts of programs for several devices are `per device`.
    """
    knows_memory = before.knows_temporaries and after.knows_temporaries
    per_device = " per device" if max(before.devices, after.devices) > 1 else ""
    parts = [
        f"{name} {was} → {now}{per_device if name in ('temp', 'moved') else ''}"
        for name, figure in _COMPARED.items()
        if (was := figure(before)) != (now := figure(after)) and (knows_memory or name != "temp")
    ]
    return " · ".join(parts) if parts else SAME


# How long a function is traced, lowered and compiled, and which lines its equations are from.


_NOTICED = 2.0
"""Seconds of all stages from which hovers and tooltips list them: shorter ones interrupt nobody."""
_MANY = 1000
"""Equations from which a function says which lines they are from, a choice: fewer compile fast."""
_LINES = 3
"""Lines that are listed, a choice: a loop that was unrolled is one."""
_SHARE = 0.1
"""The least share of all equations of a line that is listed: changing less saves no time."""


def compile_lines(kernels: AnyFigures) -> list[str]:
    """Return the times of all stages, and the lines of most equations if there are many."""
    return [shares(kernels), *_by_line(kernels)]


def notable_lines(kernels: AnyFigures) -> list[str]:
    """Return the same, without the times of a function that is made quickly."""
    made = (kernels.trace_seconds or 0.0) + kernels.lowered.seconds + kernels.compiled.seconds
    return compile_lines(kernels) if made >= _NOTICED else list(_by_line(kernels))


def shares(kernels: AnyFigures) -> str:
    """Return `trace 0.4 s · lower 0.2 s · XLA 6.1 s`: the times as measured, cached ones too."""
    return stages(kernels.trace_seconds, kernels.lowered.seconds, xla_seconds(kernels.compiled))


def stages(traced: float | None, lowered: float, xla: str) -> str:
    """Return the seconds of the stages, with those of XLA in words already."""
    first = [f"trace {seconds(traced)}"] if traced is not None else []
    return " · ".join([*first, f"lower {seconds(lowered)}", f"XLA {xla}"])


def equations_by_line(kernels: AnyFigures) -> Counter[int]:
    """Return the number of equations of each line (from 1), inner ones included."""
    alike: dict[Span | None, str] = {}  # a place takes far longer to find than a span
    numbers = Counter(
        path if equation.span is None else alike.setdefault(equation.span, path)
        for path, equation in kernels.equations.items()
    )
    lines = Counter[int]()
    for path, number in numbers.items():
        if (line := kernels.line(path)) is not None:
            lines[line] += number
    return lines


def _by_line(kernels: AnyFigures) -> Iterator[str]:
    """Yield `line 14: 1,200 of 1,500 equations` for the lines that make a trace large."""
    total = len(kernels.equations)
    if total < _MANY:
        return
    for line, number in equations_by_line(kernels).most_common(_LINES):
        if number >= _SHARE * total:
            yield f"line {line}: {number:,} of {total:,} equations"


# The number of launches in words, and what is unknown of it until the program runs.


_NAMED = 3
"""Libraries that a line names, a choice: more than that call cuBLAS, cuDNN and cuFFT."""


def undecided(kernels: AnyFigures) -> Iterator[str]:
    """Yield what is unknown until the program runs.

    That are trip counts of loops, arms of conditionals, and the launches of libraries.

    On a GPU each iteration of a loop whose trip count the HLO does not state, and each conditional,
    copies its predicate to the host and waits (`xla/backends/gpu/runtime/while_thunk.cc`,
    `conditional_thunk.cc`).
    """
    graph = kernels.graph
    for index, (loop, cost) in enumerate(zip(graph.loops, costs(kernels), strict=True)):
        at = _at(kernels, "loop", loop.equation)
        if loop.trips is None:
            inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
            in_arms = any(graph.kernels[i].branch != loop.branch for i in inside)
            figure = _once(graph, inside, index, "up to" if in_arms else "")
            each = f", {figure} each" if figure else ""
            yield f"{at}: unknown number of iterations{each}"
            if words := cost_words(cost):
                yield f"{at}: an iteration takes {words}"
        if loop.waits:
            yield f"{at}: each iteration copies its condition to the host and waits"
    on_host = kernels.target.platform in ("cuda", "rocm")
    for first, branch in enumerate(graph.branches):
        if branch.arm:
            continue
        arms = range(first, first + branch.arms)
        inside = [i for i, k in enumerate(graph.kernels) if graph.is_within(k.branch, arms)]
        words = f"{_at(kernels, 'conditional', branch.equation)}: one of {branch.arms} arms runs"
        words += f" ({figure})" if (figure := _once(graph, inside, branch.loop, "up to")) else ""
        yield f"{words}; the host reads its predicate first" if on_host else words
    if named := list(dict.fromkeys(kernel.title for kernel in graph.libraries)):
        yield f"{some(named, _NAMED)}: one call launches an unknown number of kernels"


def iterations(kernels: AnyFigures) -> Iterator[str]:
    """Yield `loop at line 12: 7 iterations`, once per line, for loops with known trip counts.

    With what one costs it is `loop at line 12: 7 iterations, each ≈ 2.1 µs on the device, …`.
    """
    lines: dict[str, None] = {}
    for loop, cost in zip(kernels.graph.loops, costs(kernels), strict=True):
        if loop.trips is not None:
            each = f", each {words}" if (words := cost_words(cost)) else ""
            at = _at(kernels, "loop", loop.equation)
            lines[f"{at}: {count(loop.trips, 'iteration')}{each}"] = None
    yield from lines


def _once(graph: Graph, inside: Sequence[int], loop: int, up_to: str) -> str:
    """Return `3 launches` for some kernels in one iteration of the loop around them all.

    `loop` is -1 if there is no such loop. Empty if a loop within it has an unknown trip count.
    Where a library decides it is `3–5 launches` or `≥ 3 launches`, with `up_to` `up to 5 launches`.
    """
    chains = (graph.kernels[index].loops for index in inside)
    within = {
        inner for chain in chains for inner in chain[chain.index(loop) + 1 if loop >= 0 else 0 :]
    }
    if any(graph.loops[inner].trips is None for inner in within):
        return ""
    times = graph.iterations(loop)
    least, most = graph.launches_of(inside) // times, graph.most_of(inside)
    if most is None:
        return f"≥ {least} launches" if not up_to else ""
    figure = f"{up_to} {most // times}" if up_to else interval(least, most // times)
    return f"{figure} {'launch' if most // times == 1 else 'launches'}"


def _at(kernels: AnyFigures, noun: str, equation: str) -> str:
    """Return `loop at line 12`; `loop` if its place is unknown."""
    line = kernels.line(equation)
    return noun if line is None else f"{noun} at line {line}"


# What an iteration of a loop costs on the device, and what it costs the host that launches it.


LAUNCH = 3.1e-6
"""Seconds of the host per launch, on a machine with an H100: `fori_loop`s of one small kernel and a
`scan` of a small product take 6.3 and 9.4 µs an iteration, with 2 and 3 launches."""
WAIT = 15e-6
"""Seconds of the host to copy a loop's condition and to wait for it, on the same machine: a `while`
of unknown length with two kernels takes 22 µs an iteration."""


IterationCost = tuple[float | None, float | None]
"""Seconds of one iteration of a loop on the device and on the host; `None` if unknown."""


def costs(kernels: AnyFigures) -> Iterator[IterationCost]:
    """Yield what an iteration of each loop costs, in the order of the graph's loops.

    That is unknown if values decide what runs in it, in conditionals and loops of unknown length.
    The time of a callback on the host and the launches of a library are unknown, too.
    """
    graph, libraries = kernels.graph, kernels.graph.libraries
    for index, loop in enumerate(graph.loops):
        inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
        of_it = [graph.kernels[i] for i in inside]
        inner = {each for kernel in of_it for each in kernel.loops[kernel.loops.index(index) + 1 :]}
        is_open = any(kernel.branch != loop.branch for kernel in of_it)
        if not inside or is_open or any(graph.loops[each].trips is None for each in inner):
            yield None, None
            continue
        times, seconds = graph.iterations(index), together(of_it, kernels.target)
        device = seconds / times if seconds is not None else None
        is_unknown = any(each.kind == CALLBACK or each in libraries for each in of_it)
        if kernels.target.platform != "cuda" or is_unknown:
            yield device, None
            continue
        waits = sum(graph.iterations(each) for each in {index, *inner} if graph.loops[each].waits)
        host = (graph.launches_of(inside) * LAUNCH + waits * WAIT) / times
        yield device, host


def cost_words(cost: IterationCost) -> str:
    """Return `≈ 2.1 µs on the device, ≈ 6.2 µs on the host`; empty if nothing is known."""
    known = zip(cost, ("device", "host"), strict=True)
    return ", ".join(
        f"{units.about(seconds)} on the {where}" for seconds, where in known if seconds is not None
    )
