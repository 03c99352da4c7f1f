"""Compile the program of a request in this process."""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.compiler import attempts, devices
from jaxsight.compiler.compat import cub, with_jax, xla
from jaxsight.compiler.compat.running import waiting
from jaxsight.compiler.devices import Prepared
from jaxsight.compiler.hlo import read
from jaxsight.compiler.hlo.distributed import rematerializations, shardings
from jaxsight.compiler.hlo.shapes import dtype, sizes
from jaxsight.measuring.programs import MeasuredProgram, measured, ready
from jaxsight.targets.chips import Gpu
from jaxsight.targets.target import parse
from jaxsight.timeline import mark
from jaxsight.wire.donation import aliases
from jaxsight.wire.kernel_graph import Graph, Kernel, Value
from jaxsight.wire.meshes import ONE_DEVICE
from jaxsight.wire.messages.compiling import (
    AHEAD_OF_TIME,
    ON_DEVICE,
    SIMULATED,
    Compile,
    Compiled,
    NotCompiled,
)
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits
from jaxsight_source.compat import avals
from jaxsight_source.jaxprs.arguments import SMALL, drawn_array, repeated_numbers

# Run a program on this machine's device with random arguments, and time the runs.
#
# It is for a machine that has no source of the program, only its StableHLO.


def run(
    request: Compile, program: bytes, prepared: Prepared, graph: Graph, limits: MeasuringLimits
) -> Measured:
    """Compile a portable artifact once more, and return what its runs take.

    Args:
        request: the request.
        program: its artifact.
        prepared: the devices; only the first one runs.
        graph: the kernels of the program, whose parameters are its arguments.
        limits: what ends the runs.

    Raises:
        Refused: the program cannot be run here.
    """
    if prepared.devices.distribution.devices > 1:
        raise xla.Refused("target", "programs for several devices are not run on another machine")
    platform = prepared.devices.platform
    devices = replace(prepared.devices, devices=with_jax.devices(platform, 1), toolchain=with_jax)
    [device] = devices.devices
    make = partial(_program, request, program, replace(prepared, devices=devices), graph, device)
    try:
        return measured([make], limits, lambda stage, detail: None, request.id, device)
    except xla.Refused:
        raise
    except Exception as error:
        raise xla.Refused("xla", f"running it fails: {error}") from error


def _program(
    request: Compile, program: bytes, prepared: Prepared, graph: Graph, device: jax.Device
) -> MeasuredProgram:
    begin = time.perf_counter()
    options = {**prepared.options, **dict(request.options)}
    executable = xla.executable(program, prepared.devices, options)
    seconds = time.perf_counter() - begin
    hlo = executable.hlo_modules()[0].to_string()
    indices, generator = dict(request.indices), np.random.default_rng(0)
    arguments = [
        _argument(value, indices.get(at), generator) for at, value in enumerate(graph.parameters)
    ]
    placed = jax.device_put(arguments, device)
    ready(placed)
    donated = {alias.parameter for alias in aliases(hlo)}

    def prepare() -> object:
        if not donated:
            return placed
        given = [jnp.copy(value) if at in donated else value for at, value in enumerate(placed)]
        return ready(given)

    names = [f"argument {at}" for at in range(len(placed))]
    return MeasuredProgram(waiting(executable), prepare, hlo, names, 0.0, seconds)


def _argument(value: Value, size: int | None, generator: np.random.Generator) -> jax.Array:
    name = dtype(value.text)
    kind = {"s": "int", "u": "uint", "f": "float", "c": "complex"}.get(name[:1], "")
    numpy_name = {"pred": "bool", "bf16": "bfloat16"}.get(name) or (
        f"float8_{name[2:]}" if name.startswith("f8") else f"{kind}{name[1:]}"
    )
    aval = avals.of(avals.struct(tuple(sizes(value)), np.dtype(getattr(jnp, numpy_name))))
    integers = SMALL if size is None else (0, size)
    return drawn_array(aval, generator, numbers=repeated_numbers, integers=integers)


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
        from jaxsight.compiler.answer import run

        measured = run(request, program, prepared, described.graph, request.runs)
        return replace(described, measured=measured)
    except xla.Refused as error:
        return NotCompiled(request.id, error.kind, str(error))


def _described(
    request: Compile,
    prepared: devices.Prepared,
    compiled: xla.Compilation,
    differences: tuple[str, ...],
    seconds: float,
) -> Compiled:
    """Return what XLA's texts and figures say of a program that took `seconds` to compile."""
    of = prepared.devices
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
        notes=(*_notes(prepared.notes, graph), *differences),
        is_complete=compiled.is_complete,
        devices=of.distribution.devices,
        shardings=shardings.read(compiled.unpartitioned, meshes) if compiled.unpartitioned else (),
        rematerialized=rematerializations.read(compiled.log),
    )


_LARGE_SORT = 80_000
_NARROW_SORT = 512
"""Above `_LARGE_SORT` bytes (22,000 elements of 32 bits are more), or `_NARROW_SORT` elements
of 16 bits or fewer, XLA uses CUB for sorts of one key and at most one value
(`IsCubSortFasterOnH100`, `IsCubCompatibleSort` in `xla/backends/gpu/transforms/sort_rewriter.cc`).
"""


def _notes(notes: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """Return those notes of a device that apply to these kernels."""
    about = {
        devices.GUESSED: any(
            kernel.ends_because in ("matmul", "convolution") for kernel in graph.kernels
        ),
        devices.SORTS: any(map(_may_be_cubs, graph.kernels)),
        devices.SCRATCH: any(
            kernel.ends_because == "sort" and kernel.workspace for kernel in graph.kernels
        ),
    }
    return tuple(note for note in notes if about.get(note, True))


def _may_be_cubs(kernel: Kernel) -> bool:
    """Return whether XLA may use CUB on the device for a kernel that is its own sort."""
    if kernel.ends_because != "sort" or "sort" not in kernel.title or len(kernel.inputs) > 2:
        return False
    if kernel.workspace:
        return False
    arrays = [(value.bytes, math.prod(sizes(value))) for value in kernel.inputs]
    if cub.is_known(xla.JAXLIB):
        return any(count > cub.LONGEST for _, count in arrays)
    return any(
        size > _LARGE_SORT or (count > _NARROW_SORT and size <= 2 * count) for size, count in arrays
    )
