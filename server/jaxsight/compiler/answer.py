"""Compile the program of a request in this process."""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from jaxsight.compiler import attempts, devices
from jaxsight.compiler.compat import xla
from jaxsight.compiler.hlo import read
from jaxsight.compiler.hlo.distributed import shardings
from jaxsight.hlo.shapes import sizes
from jaxsight.hlo.text import aliases
from jaxsight.targets.chips import Gpu
from jaxsight.targets.target import parse
from jaxsight.timeline import mark
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.meshes import ONE_DEVICE
from jaxsight.wire.messages.compiling import (
    AHEAD_OF_TIME,
    ON_DEVICE,
    SIMULATED,
    Compile,
    Compiled,
    NotCompiled,
)


def answer(
    request: Compile, is_cancelled: Callable[[], bool] | None = None
) -> Compiled | NotCompiled:
    """Compile a program in this process.

    Args:
        request: the program.
        is_cancelled: whether the answer is not needed any more. Compiles that can be cancelled or
            are not complete need a process in which no other thread compiles.
    """
    try:
        program = base64.b64decode(request.program, validate=True)
    except binascii.Error as error:
        return NotCompiled(request.id, "program", f"the program is not valid base64: {error}")
    attempt = (
        partial(xla.compile, is_cancelled=is_cancelled)
        if request.complete
        else xla.compile_to_schedule
    )
    try:
        distribution = request.distribution or ONE_DEVICE
        prepared = devices.devices(request.target, distribution)
        begin = time.perf_counter()
        options, target = dict(request.options), parse(request.target)
        compiled, differences = attempts.compile(program, prepared, options, target, attempt)
        seconds = time.perf_counter() - begin
        described = _described(request, prepared, compiled, differences, seconds)
        if request.runs is None:
            return described
        from jaxsight.compiler.running import run

        measured = run(request, program, prepared, described.graph, request.runs)
        return replace(described, measured=measured)
    except xla.NotCompilable as error:
        return NotCompiled(request.id, error.kind, str(error))


def _described(
    request: Compile,
    of: xla.Devices,
    compiled: xla.Compilation,
    differences: tuple[str, ...],
    seconds: float,
) -> Compiled:
    """Return what XLA's texts and figures say of a program that took `seconds` to compile."""
    how = ON_DEVICE if of.here else AHEAD_OF_TIME
    if of.here and of.platform == "cpu" and of.distribution.devices > 1:
        how = SIMULATED
    meshes = of.distribution.meshes
    target = parse(request.target)
    chip = target.chip
    graph = read(
        compiled.hlo,
        constants=request.constants,
        barriers=request.barriers,
        platform=target.platform,
        capability=target.capability,
        trips=dict(request.trips),
        communicates=request.communicates,
        meshes=meshes,
        workspace=chip.blas_workspace if isinstance(chip, Gpu) and not of.here else None,
    )
    mark("kernels read")
    return Compiled(
        id=request.id,
        target=request.target,
        how=how,
        graph=graph,
        memory=compiled.memory,
        hlo=compiled.hlo,
        seconds=seconds,
        flops=compiled.flops,
        jaxlib=xla.JAXLIB,
        platform=of.platform_version,
        device_kind=of.kind,
        aliases=aliases(compiled.hlo),
        notes=(*_notes(of.notes, graph), *differences),
        is_complete=compiled.is_complete,
        devices=of.distribution.devices,
        shardings=shardings.read(compiled.unpartitioned, meshes) if compiled.unpartitioned else (),
        rematerialized=shardings.rematerialized(compiled.log),
    )


_LARGE_SORT = 80_000
_NARROW_SORT = 512
"""Above `_LARGE_SORT` bytes (22,000 elements of 32 bits are more), or `_NARROW_SORT` elements
of 16 bits or fewer, XLA uses CUB for sorts of one key and at most one value
(`IsCubSortFasterOnH100`, `IsCubCompatibleSort` in `xla/backends/gpu/transforms/sort_rewriter.cc`).
"""


def _notes(notes: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """Return those notes of a device that apply to these kernels."""
    ends = {(kernel.ends_because, bool(kernel.workspace)) for kernel in graph.kernels}
    about = {
        devices.GUESSED: any(end in ("matmul", "convolution") for end, _ in ends),
        devices.SORTS: any(map(_may_be_cubs, graph.kernels)),
        devices.SCRATCH: ("sort", True) in ends,
    }
    return tuple(note for note in notes if about.get(note, True))


def _may_be_cubs(kernel: Kernel) -> bool:
    """Return whether XLA may use CUB on the device for a kernel that is its own sort."""
    is_own = kernel.ends_because == "sort" and "sort" in kernel.title and not kernel.workspace
    if not is_own or len(kernel.inputs) > 2:
        return False
    arrays = [(value.bytes, math.prod(sizes(value))) for value in kernel.inputs]
    if devices.sorts_with_cub(xla.JAXLIB):
        return any(count > devices.LONGEST_CUB_SORT for _, count in arrays)
    return any(
        size > _LARGE_SORT or (count > _NARROW_SORT and size <= 2 * count) for size, count in arrays
    )
