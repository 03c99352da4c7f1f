"""A function's kernels in a line or a few: totals, memory, what is unknown, and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jaxsight.features.distributed import collectives
from jaxsight.features.hover import called
from jaxsight.features.kernels import compile_time, host_transfers
from jaxsight.features.kernels.launches import (
    kernel_count,
    kernel_figure,
    launch_figure,
    launches,
    launches_of,
)
from jaxsight.queries.programs.kernels import Kernels, folded
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.text.units import count
from jaxsight.wire.kernel_graph import Graph, Kernel
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
    number = len(graph.collectives)
    return [f"{count(number, 'collective')}, {moved_figure(graph)}"] if number else []


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
    reason = "CUB scratch"
    if compiled.graph.kernels_for("cuBLAS"):
        has_buffers = any(each.buffers for each in compiled.graph.undecided)
        reason = "with cuBLAS" if has_buffers else "cuBLAS workspace"
    return f"{units.size(least)} (+ ≤ {units.size(most - least)} {reason})"


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
        on_device = "" if kernels.target.platform == CPU else " and in device memory"
        where = f"embedded in the executable{on_device}"
        lines.append(f"constants: {units.size(size)} {where}{parts}")
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
    lines += filter(None, [collectives.communication_line(kernels, moved_figure(kernels.graph))])
    sizes, chip = compiled.memory, kernels.target.chip
    parts = (sizes.arguments, sizes.outputs, sizes.temporaries, sizes.aliased)
    if compiled.is_complete and min(parts) >= 0:
        total = units.size(sizes.arguments + sizes.outputs + sizes.temporaries - sizes.aliased)
        of = f" of {units.size(chip.memory)}" if isinstance(chip, Gpu) else ""
        lines.append(f"memory per device: {total}{of} (arguments, outputs and temporaries)")
    return lines


def meshes(kernels: Kernels) -> str:
    """Return the axes of a program's meshes, each once: `data=2, model=4`."""
    distribution = kernels.lowered.distribution
    named = distribution.meshes if distribution is not None else ()
    return "; ".join(dict.fromkeys(mesh.text for mesh in named if mesh.axes))


def sentence(kernels: Kernels, index: int, kernel: Kernel) -> str:
    """Return one kernel in a sentence."""
    if kernel.collective is not None:
        title, reason, *_ = collectives.described(kernels, index)
        return f"{collectives.SIGN} {title}; {reason}; {collectives.time(kernels, kernel)}"
    on = " on each device" if kernels.compiled.devices > 1 else ""
    flow = f"{units.size(kernel.bytes_in)} in, {units.size(kernel.bytes_out)} out{on}"
    figure = launches_of(kernel)
    times = f", launched {figure} times" if figure != "1" else ""
    if kernel.launches == 0:
        times = ", never launched as the number of iterations is known"
    feeding = f" {purpose}" if (purpose := kernels.feeding(kernel)) else ""
    return (
        f"kernel {index + 1}: {kernel.title}{feeding}{times}, {flow}; fusion boundary: "
        f"{kernels.reason(kernel)}"
    )


_COMPARED: Mapping[str, Callable[[Compiled], str]] = {
    "kernels": lambda program: kernel_figure(program.graph),
    "launches": lambda program: launch_figure(program.graph),
    "devices": lambda program: str(program.devices),
    "collectives": lambda program: str(len(program.graph.collectives)),
    "moved": lambda program: moved_figure(program.graph),
    "host transfers": lambda program: str(len(program.graph.offloads)),
    "to and from the host": lambda p: host_transfers.moved(p.graph, p.graph.offloads),
    "temp": temporary_memory,
    "folded": lambda program: units.size(folded(program)),
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
