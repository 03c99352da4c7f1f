"""Pallas kernels of a function: grid, blocks, and the memory that they take, before compiling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import EquationRanges
from jaxsight.queries.traces.located_answer import View
from jaxsight.targets.target import Target, memory_limits, parse
from jaxsight.text.units import size
from jaxsight.wire.program import SMEM, VMEM, Body, KernelArray, PallasKernel, Step

COLUMNS = ("array", "block", "of", "buffers", "memory", "bytes")

_KEYS = {VMEM: "vmem", SMEM: "smem"}
"""How the names of sizes in JSON begin, by memory."""


@dataclass(frozen=True, slots=True)
class CalledKernels:
    """The Pallas kernels that a function calls, traced for a target."""

    target: Target
    kernels: tuple[PallasKernel, ...]
    lines: tuple[str, ...]
    """For each kernel, where the user calls it; empty if that is not known."""


async def called_kernels(engine: Engine, view: View, name: str | None) -> CalledKernels:
    """Return the kernels of a traced function; nothing is compiled.

    Args:
        engine: the engine.
        view: the function.
        name: the target's name, the project's by default.
    """
    target = parse(name) if name else engine.choices.target(view.answer.question.path)
    view = await engine.traces.for_target(view, target)
    outlined = await engine.programs.outline(view) if view.is_traced else None
    steps = list(_calls(outlined.program.body)) if outlined is not None else []
    places = EquationRanges(view, {step.path: step.span for step, _ in steps})
    return CalledKernels(
        target,
        tuple(kernel for _, kernel in steps),
        tuple(places.text(step.path) for step, _ in steps),
    )


def _calls(body: Body) -> Iterator[tuple[Step, PallasKernel]]:
    for step in body.steps:
        if step.kernel is not None:
            yield step, step.kernel
        else:
            for inner in step.bodies:
                yield from _calls(inner)


def title(kernel: PallasKernel, target: Target) -> str:
    """Return a line: `Pallas kernel double, grid 32: VMEM 8 MiB of 16 MiB, SMEM 0 B of 1 MiB`."""
    grid = " × ".join("?" if each < 0 else f"{each:,}" for each in kernel.grid)
    named = f"Pallas kernel {kernel.name}" + (f", grid {grid}" if grid else "")
    parts = [
        f"{memory} {size(kernel.used(memory))} of {size(limit)}{_excess(kernel, memory, limit)}"
        for memory, limit in memory_limits(kernel, target).items()
    ]
    return f"{named}: {', '.join(parts)}" if parts else named


def _excess(kernel: PallasKernel, memory: str, limit: int) -> str:
    """Return whether a kernel takes too much, as certain as JX457 is of it."""
    if kernel.used(memory) <= limit:
        return ""
    return " (too much)" if kernel.used_by_itself(memory) > limit else " (estimated to be too much)"


def record(called: CalledKernels) -> list[dict[str, object]]:
    """Return the kernels as JSON: sizes in bytes, null for memories that the target lacks."""
    return [
        {
            "name": kernel.name,
            "source": line,
            "grid": [size if size >= 0 else None for size in kernel.grid],
            **{
                f"{key}_{word}": number if memory in limits else None
                for memory, key in _KEYS.items()
                for word, number in (
                    ("bytes", kernel.used(memory)),
                    ("limit_bytes", limits.get(memory)),
                )
            },
            "arrays": [_array(array, limits) for array in kernel.arrays],
        }
        for kernel, line in zip(called.kernels, called.lines, strict=True)
        for limits in (memory_limits(kernel, called.target),)
    ]


def _array(array: KernelArray, limits: Mapping[str, int]) -> dict[str, object]:
    known = array.memory in limits
    outside = array.outside
    return {
        "name": array.name,
        "dtype": array.dtype,
        "block": list(array.shape),
        "of": list(array.array) if array.array else None,
        "buffers": array.buffers if known else None,
        "memory": array.memory if known else None,
        "bytes": array.bytes if known else None,
        "outside": outside
        and {"grid_position": list(outside.position), "start": list(outside.start)},
    }


def rows(kernel: PallasKernel, target: Target) -> Iterator[tuple[str, ...]]:
    """Yield a row for each array of a kernel; its memory is that on the target."""
    limits = memory_limits(kernel, target)
    for array in kernel.arrays:
        known = array.memory in limits
        yield (
            array.name,
            f"{array.dtype}{list(array.shape)}",
            _whole(array),
            str(array.buffers) if known and array.array else "",
            array.memory if known else "HBM" if VMEM in limits and array.array else "",
            size(array.bytes) if known else "",
        )


def _whole(array: KernelArray) -> str:
    if not array.array:
        return ""
    outside = "" if array.outside is None else f", a block starts at {array.outside.start}"
    return f"{list(array.array)}{outside}"
