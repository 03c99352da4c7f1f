"""Run a program on this machine's device with random arguments, and time the runs.

It is for a machine that has no source of the program, only its StableHLO.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.compiler.compat import with_jax, xla
from jaxsight.hlo.shapes import dtype, sizes
from jaxsight.hlo.text import aliases
from jaxsight.measuring.arguments import repeated_numbers
from jaxsight.measuring.programs import MeasuredProgram, measured, ready
from jaxsight.wire.kernel_graph import Graph, Value
from jaxsight.wire.messages.compiling import Compile
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits
from jaxsight_source.compat import avals
from jaxsight_source.jaxprs.arguments import SMALL, drawn_array


def run(
    request: Compile, program: bytes, devices: xla.Devices, graph: Graph, limits: MeasuringLimits
) -> Measured:
    """Compile a portable artifact once more, and return what its runs take.

    Args:
        request: the request.
        program: its artifact.
        devices: those of the target; only the first one runs.
        graph: the kernels of the program, whose parameters are its arguments.
        limits: what ends the runs.

    Raises:
        Refused: the program cannot be run here.
    """
    if devices.distribution.devices > 1:
        raise xla.NotCompilable(
            "target", "programs for several devices are not run on another machine"
        )
    [device] = here = with_jax.devices(devices.platform, 1)
    devices = replace(devices, devices=here, toolchain=with_jax)
    make = partial(_program, request, program, devices, graph, device)
    try:
        return measured([make], limits, lambda stage, detail: None, request.id, device)
    except xla.NotCompilable:
        raise
    except Exception as error:
        raise xla.NotCompilable("xla", f"running it fails: {error}") from error


def _program(
    request: Compile, program: bytes, devices: xla.Devices, graph: Graph, device: jax.Device
) -> MeasuredProgram:
    begin = time.perf_counter()
    options = {**devices.options, **dict(request.options)}
    executable = xla.executable(program, devices, options)
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

    def run(given: object) -> object:
        return ready(with_jax.executed(executable, given))

    names = [f"argument {at}" for at in range(len(placed))]
    return MeasuredProgram(run, prepare, hlo, names, 0.0, seconds)


def _argument(value: Value, size: int | None, generator: np.random.Generator) -> jax.Array:
    name = dtype(value.text)
    kind = {"s": "int", "u": "uint", "f": "float", "c": "complex"}.get(name[:1], "")
    numpy_name = {"pred": "bool", "bf16": "bfloat16"}.get(name) or (
        f"float8_{name[2:]}" if name.startswith("f8") else f"{kind}{name[1:]}"
    )
    aval = avals.of(avals.struct(tuple(sizes(value)), np.dtype(getattr(jnp, numpy_name))))
    integers = SMALL if size is None else (0, size)
    return drawn_array(aval, generator, numbers=repeated_numbers, integers=integers)
