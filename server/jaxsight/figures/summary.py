"""The figures of a compiled program in words."""

from __future__ import annotations

from collections.abc import Iterable

from jaxsight.targets.chips import Tpu
from jaxsight.targets.roofline import total
from jaxsight.targets.target import Target
from jaxsight.text import units
from jaxsight.text.units import count, interval, seconds
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.kernel_work import HostTransfer
from jaxsight.wire.messages import compiling
from jaxsight.wire.messages.compiling import Compiled

UNKNOWN = "?"

NOT_YET = "…"

WITH_SIZES = "with assumed sizes"
"""What follows figures of a function whose inputs are assumed."""

LONG = 5.0
"""Seconds of compiling from which headlines say so, a choice: from there on users ask why."""


def headline(compiled: Compiled, target: Target) -> str:
    """Return `2 kernels · 2 launches · temp 512 KiB · h100`.

    A compile that takes long is the last part: `compiled in 64 s`.
    """
    graph = compiled.graph
    parts = [kernel_count(graph), launches(graph)]
    if graph.callback_count:
        parts.append(count(graph.callback_count, "host callback"))
    parts += host_transfer_figure(graph)
    moved, per_device = communication(graph), " per device" if compiled.devices > 1 else ""
    if (temporaries := temporary_memory(compiled)) != UNKNOWN:
        parts.append(f"temp {temporaries}{per_device}")
    else:
        moved = [f"{text}{per_device}" for text in moved]
    long = filter(None, [long_compile(compiled)])
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


def kernel_count(graph: Graph) -> str:
    """Return `2 kernels`; `6–11 kernels` where autotuning on the device decides."""
    figure = kernel_figure(graph)
    return f"{figure} {'kernel' if figure == '1' else 'kernels'}"


def kernel_figure(graph: Graph) -> str:
    """Return `6` or `6–11`."""
    return interval(graph.kernel_count, graph.kernels_at_most)


def launches(graph: Graph) -> str:
    """Return `3 launches`; `3–7 launches` if values or the device decide; `≥ 3 launches`."""
    figure = launch_figure(graph)
    return f"{figure} {'launch' if figure == '1' else 'launches'}"


def launch_figure(graph: Graph) -> str:
    """Return `3`, `3–7`, or `≥ 3` with loops or libraries' calls of unknown launches."""
    return interval(graph.launches_at_least, graph.launches_at_most)


def launches_of(kernel: Kernel) -> str:
    """Return the launches of a kernel, with all iterations: `7`, `7–14`, `≥ 7`."""
    return interval(kernel.launches, kernel.launches_at_most)


def host_transfer_figure(graph: Graph) -> list[str]:
    """Return `2 host transfers, 512 MiB`: their number, and the bytes of one run; or nothing.

    Callbacks have a figure of their own.
    """
    if not (offloads := graph.offloads):
        return []
    return [f"{count(len(offloads), 'host transfer')}, {moved_to_host(graph, offloads)}"]


def moved_to_host(graph: Graph, transfers: Iterable[HostTransfer]) -> str:
    """Return `68 MiB`, or `≥ 4 MiB` or `4 MiB–68 MiB` if runtime values decide."""
    chosen = tuple(transfers)
    is_open = any(graph.loops[loop].trips is None for each in chosen for loop in each.loops)
    most = None if is_open else graph.host_bytes(chosen)
    return units.interval(graph.host_bytes_at_least(chosen), most, units.size)


def estimated_time(graph: Graph, target: Target) -> str:
    """Return `≈ 38 µs`, or `≥ 38 µs` where a part is not known; empty without an estimate."""
    if (found := total(graph, target)) is None:
        return ""
    return f"≥ {units.time(found.seconds)}" if found.is_lower_bound else units.about(found.seconds)


def scope(collective: Collective) -> str:
    """Return `over data`, `in groups of 4` or `between 8 pairs`; empty if unknown."""
    if collective.axes:
        return f"over {', '.join(collective.axes)}"
    if not collective.groups:
        return ""
    if collective.kind == "collective-permute":
        return f"between {count(len(collective.groups), 'pair')}"
    return f"in groups of {collective.group_size}"


def long_compile(compiled: Compiled) -> str:
    """Return `compiled in 64 s` for a compile that takes long, else nothing.

    A compile that ended before code was generated has a lower bound: `compiled in ≥ 64 s`.
    """
    return f"compiled in {xla_seconds(compiled)}" if compiled.seconds >= LONG else ""


def xla_seconds(compiled: Compiled) -> str:
    least = "" if compiled.is_complete else "≥ "
    return f"{least}{seconds(compiled.seconds)}"
