"""A function's kernels in a line or a few: totals, memory, what is unknown, and changes."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.distributed.collectives import communication_line
from jaxsight.features.hover import called
from jaxsight.features.kernels import compile_time, host_transfers
from jaxsight.features.kernels.launches import (
    kernel_count,
    kernel_figure,
    launch_figure,
    launches,
)
from jaxsight.queries.programs.kernels import Kernels, folded
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.text.units import count
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages import compiling
from jaxsight.wire.messages.compiling import Compiled

SAME = "the same"
UNKNOWN = "?"
NOT_YET = "…"


def headline(compiled: Compiled, target: Target) -> str:
    """Return `2 kernels · 2 launches · temp 512 KiB · h100`.

    A compile that takes long is the last part: `compiled in 64 s`.
    """
    graph = compiled.graph
    parts = [kernel_count(graph), launches(graph)]
    if graph.callback_count:
        parts.append(count(graph.callback_count, "host callback"))
    parts += host_transfers.figure(graph)
    moved, per_device = communication(graph), " per device" if compiled.devices > 1 else ""
    if (temporaries := temporary_memory(compiled)) != UNKNOWN:
        parts.append(f"temp {temporaries}{per_device}")
    else:
        moved = [f"{text}{per_device}" for text in moved]
    long = filter(None, [compile_time.word(compiled)])
    return " · ".join([*parts, *moved, devices(compiled, target), *long])


def devices(compiled: Compiled, target: Target) -> str:
    """Return the devices that a program runs on: `h100`, `8 × h100`, `4 of h100x8`."""
    if not target.devices:
        return f"{compiled.devices} × {target.short}" if compiled.devices > 1 else target.short
    if compiled.devices == target.devices:
        return target.short
    return f"{compiled.devices} of {target.short}"


def communication(graph: Graph) -> list[str]:
    """Return `4 collectives, 68 MiB`: their number, and the bytes on one device; or nothing."""
    collectives = len(graph.collectives)
    if not collectives:
        return []
    return [f"{count(collectives, 'collective')}, {moved_figure(graph)}"]


def moved_figure(graph: Graph) -> str:
    """Return `68 MiB`, or `≥ 4 MiB` or `4 MiB–68 MiB` if runtime values decide."""
    most = graph.moved_bytes if graph.moved_known else None
    return units.interval(graph.moved_at_least, most, units.size)


def temporary_memory(compiled: Compiled) -> str:
    """Return `512 KiB`, `…` if it is not known yet, or `?` if it will not be.

    Where the device decides, that is `0 B (+ ≤ 32 MiB cuBLAS workspace)` or `≥ 512 KiB`.
    """
    if not compiled.knows_temporaries:
        return NOT_YET
    least, most = compiled.temporaries, compiled.temporaries_at_most
    if least < 0:
        return UNKNOWN
    if most < 0:
        return f"≥ {units.size(least)}"
    if most == least:
        return units.size(least)
    return f"{units.size(least)} (+ ≤ {units.size(most - least)} {_reason(compiled.graph)})"


def _reason(graph: Graph) -> str:
    """Return why the temporaries of a program depend on the device."""
    if not graph.kernels_for("cuBLAS"):
        return "CUB scratch"
    return "with cuBLAS" if any(each.buffers for each in graph.undecided) else "cuBLAS workspace"


def shorter_temporary_memory(compiled: Compiled) -> str:
    """Return `≤ 32 MiB` where the device decides, else as `temporary_memory`."""
    if not compiled.knows_temporaries or compiled.temporaries_at_most <= compiled.temporaries:
        return temporary_memory(compiled)
    return f"≤ {units.size(compiled.temporaries_at_most)}"


def how(compiled: Compiled) -> str:
    """Return how figures were obtained."""
    match compiled.how:
        case compiling.ON_DEVICE:
            return "on the device" if compiled.devices == 1 else "on the devices"
        case compiling.SIMULATED:
            return f"for {compiled.devices} simulated devices"
        case _:
            return f"ahead of time (no {'device' if compiled.devices == 1 else 'devices'})"


def origin(compiled: Compiled, target: Target) -> str:
    """Return `8 × NVIDIA H100 80GB HBM3, compiled ahead of time (no devices)`."""
    chip, number = target.chip, compiled.devices
    if chip is None or target.is_own or number == 1:
        title = target.title
    elif isinstance(chip, Tpu) and chip.devices > 1:
        title = f"{number} devices of {-(-number // chip.devices)} × {target.title}"
    else:
        title = f"{number} × {target.title}"
    return f"{title}, compiled {how(compiled)}"


def memory_lines(kernels: Kernels) -> list[str]:
    """Return what a headline does not show of memory.

    That is constants, workspaces, donated buffers, and what moves to and from the host.

    For a program of several devices, the first line says that figures are those of one; for a
    function with example inputs from callers, that they are those of the function alone.
    """
    graph = kernels.graph
    alone = called.compiled_alone(kernels.view)
    lines = [alone] if alone else []
    if kernels.compiled.devices > 1:
        lines += ["all figures are those of one device", *distribution_lines(kernels)]
    if size := sum(constant.value.bytes for constant in graph.constants):
        of_it = folded(kernels.compiled)
        parts = f", of which {units.size(of_it)} folded" if of_it else ""
        lines.append(f"constants: {units.size(size)} {_where(kernels.target)}{parts}")
    if most := max((kernel.workspace for kernel in graph.kernels), default=0):
        lines.append(f"workspace: up to {units.size(most)} per library call, in the temporaries")
    lines += host_transfers.lines(kernels)
    return [*lines, *_undecided_lines(graph), *map(str, kernels.donations)]


def _undecided_lines(graph: Graph) -> Iterator[str]:
    """Yield what autotuning on the device may change of kernels and temporaries."""
    matmuls = graph.kernels_for("cuBLAS")
    if matmuls:
        needs = [f"{units.size(max(each.workspace or 0 for each in matmuls))} workspace"]
        if most := max(each.buffers for each in matmuls):
            needs.append(f"≤ {units.size(most)} that Triton fuses")
        number = count(len(matmuls), "matmul")
        yield f"autotuning may give {number} to cuBLAS on the device: {', '.join(needs)}"
    if graph.kernels_for("cuDNN"):
        yield "cuDNN chooses its algorithms on the device: their workspace is not known"


def distribution_lines(kernels: Kernels) -> list[str]:
    """Return the mesh, the communication and the memory of a program for several devices."""
    compiled = kernels.compiled
    lines = [f"mesh: {named}"] if (named := meshes(kernels)) else []
    lines += filter(None, [communication_line(kernels, moved_figure(kernels.graph))])
    if memory := _memory_of_device(compiled, kernels.target):
        lines.append(memory)
    return lines


def meshes(kernels: Kernels) -> str:
    """Return the axes of a program's meshes, each once: `data=2, model=4`."""
    distribution = kernels.lowered.distribution
    named = distribution.meshes if distribution is not None else ()
    return "; ".join(dict.fromkeys(mesh.text for mesh in named if mesh.axes))


def _memory_of_device(compiled: Compiled, target: Target) -> str:
    """Return `memory per device: 148 MiB of 80 GiB`; empty if it is not known."""
    sizes = compiled.memory
    parts = (sizes.arguments, sizes.outputs, sizes.temporaries, sizes.aliased)
    if not compiled.is_complete or min(parts) < 0:
        return ""
    total = sizes.arguments + sizes.outputs + sizes.temporaries - sizes.aliased
    chip = target.chip
    of = f" of {units.size(chip.memory)}" if isinstance(chip, Gpu) else ""
    return f"memory per device: {units.size(total)}{of} (arguments, outputs and temporaries)"


def _where(target: Target) -> str:
    """Return where constants are stored: on GPUs and TPUs in device memory too."""
    executable = "embedded in the executable"
    return executable if target.platform == CPU else f"{executable} and in device memory"


def change(before: Compiled, after: Compiled) -> str:
    """Return the differences as `kernels 7 → 5 · temp 1 MiB → 0 B`, or `the same`.

    Amounts of programs for several devices are `per device`.
    """
    temporaries = temporary_memory(before), temporary_memory(after)
    pairs = [
        ("kernels", kernel_figure(before.graph), kernel_figure(after.graph)),
        ("launches", launch_figure(before.graph), launch_figure(after.graph)),
        ("devices", str(before.devices), str(after.devices)),
        ("collectives", *(str(len(program.graph.collectives)) for program in (before, after))),
        ("moved", moved_figure(before.graph), moved_figure(after.graph)),
        (
            "host transfers",
            *(str(len(program.graph.offloads)) for program in (before, after)),
        ),
        (
            "to and from the host",
            *(
                host_transfers.moved(program.graph, program.graph.offloads)
                for program in (before, after)
            ),
        ),
        *(
            []
            if not (before.knows_temporaries and after.knows_temporaries)
            else [("temp", *temporaries)]
        ),
        ("folded", units.size(folded(before)), units.size(folded(after))),
    ]
    per_device = " per device" if max(before.devices, after.devices) > 1 else ""
    parts = [
        f"{figure} {was} → {now}{per_device if figure in ('temp', 'moved') else ''}"
        for figure, was, now in pairs
        if was != now
    ]
    return " · ".join(parts) if parts else SAME
