"""How long kernels take at best: estimates, never measurements.

The roofline model (Williams, Waterman, Patterson: "Roofline: an insightful visual performance
model", CACM 2009): a kernel takes as long as its operations at the chip's peak rate or its bytes at
the chip's bandwidth, whichever is longer. On a GPU each launch adds a few microseconds; on a TPU
all kernels are one program.

Where nothing is known there is no figure: chips without figures, dtypes that a chip has no rate
for, kernels that nobody can count (`graph.Kernel.work`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxsight.compiler.chips import Gpu, Tpu
from jaxsight.compiler.graph import CALLBACK, Graph, Kernel, Operations
from jaxsight.compiler.targets import Target

LAUNCH = 3e-6
"""Seconds of a launch: what NVIDIA gives for short kernels, 2 to 4 µs (A.

Gray: "Getting Started with CUDA Graphs", developer.nvidia.com/blog/cuda-graphs, 2019).
"""

LATENCY = 1825
"""Cycles of the shortest operation on vectors in libtpu's cost model (`estimated_cycles` in its
HLO). What it gives for longer ones is not used: it is far above the roofline for work on vectors.
"""

_ALGORITHM = re.compile(r"dot_(?:any_)?(f8|bf16|tf32|f16|f32|f64)_\w*?(?:_x(\d))?$")
_PASSES = {"": 1, "high": 3, "highest": 6}
"""Products of bfloat16 numbers that a TPU makes of one of float32 numbers, by precision
(`jax.lax.Precision`; libtpu's cost model gives 2.9 and 5.8 times the cycles)."""

_AS_FLOAT = {"c64": "f32", "c128": "f64", "u8": "s8", "u4": "s4"}


@dataclass(frozen=True, slots=True)
class Total:
    """Seconds of a whole program, where it has kernels without an estimate a lower bound."""

    seconds: float
    is_lower_bound: bool


def estimate(kernel: Kernel, target: Target) -> float | None:
    """Return the seconds of all runs of a kernel; `None` where they are not known: of callbacks
    too.
    """
    chip = target.chip
    if chip is None or kernel.work is None or kernel.kind == CALLBACK:
        return None
    units: dict[str, float] = {}
    for operations in kernel.work.operations:
        rate = _rate(chip, operations)
        if rate is None:
            return None
        units[operations.unit] = units.get(operations.unit, 0.0) + operations.count / rate
    moving = (kernel.work.read + kernel.work.written) / chip.bandwidth
    busy = max(moving, *units.values()) if units else moving
    if isinstance(chip, Tpu):
        latency = min(kernel.work.cycles, LATENCY) / chip.clock if chip.clock else 0.0
        return kernel.runs * max(busy, latency)
    return kernel.runs * busy + kernel.launches * LAUNCH


def total(graph: Graph, target: Target) -> Total | None:
    """Add up the kernels of a program; `None` for chips without figures and where it branches.

    Of a loop of unknown length no iteration counts.
    """
    if target.chip is None or graph.branches:
        return None
    times = [
        estimate(kernel, target) if kernel.at_least or not kernel.launches else 0.0
        for kernel in graph.kernels
    ]
    known = [seconds for seconds in times if seconds is not None]
    if not known:
        return None
    return Total(sum(known), len(known) < len(times) or not graph.launches_known)


def _rate(chip: Gpu | Tpu, operations: Operations) -> float | None:
    if operations.unit == "matrix":
        if isinstance(chip, Tpu):
            return _tpu_matrix(chip, operations)
        return _gpu_matrix(chip, operations)
    return _vector(chip, operations.dtype)


def _vector(chip: Gpu | Tpu, dtype: str) -> float | None:
    """The rate of the plain units: integers and short floats as float32.

    Infinite on TPUs whose clock nobody gives: there such work counts by its memory traffic alone,
    which is what it waits for.
    """
    if isinstance(chip, Tpu) and not chip.clock:
        return math.inf
    return chip.vector.get("f64" if dtype in ("f64", "c128") else "f32")


def _gpu_matrix(chip: Gpu, operations: Operations) -> float | None:
    """The rate of a product on a GPU.

    Products of float32 are of TF32 where the chip has it, but with the precision `highest`
    (`GetBlasComputationType` and `IsTf32Allowed` in XLA's stream_executor and matmul_utils.cc).
    Products of wide integers are done by the plain units.
    """
    dtype = _AS_FLOAT.get(operations.dtype, operations.dtype)
    passes = 1
    if algorithm := _ALGORITHM.match(operations.precision):
        dtype, passes = algorithm[1], int(algorithm[2] or 1)
    elif dtype == "f32" and operations.precision != "highest":
        dtype = "tf32"
    if dtype == "tf32" and "tf32" not in chip.peak:
        dtype = "f32"
    if dtype.startswith("f8"):
        dtype = "f8"
    if dtype in ("s16", "u16", "s32", "u32", "s64", "u64", "pred", "f32", "f64"):
        rate = chip.peak.get(dtype) or _vector(chip, dtype)
    else:
        rate = chip.peak.get(dtype)
    return rate / passes if rate is not None else None


def _tpu_matrix(chip: Tpu, operations: Operations) -> float | None:
    """The rate of a product on a TPU, whose matrix unit takes bfloat16 and narrower numbers.

    float32 is several products of bfloat16; what is narrower is converted where the chip has no
    rate of its own. Integers wider than 8 bits have no known rate.
    """
    dtype = _AS_FLOAT.get(operations.dtype, operations.dtype)
    if algorithm := _ALGORITHM.match(operations.precision):
        passes = int(algorithm[2] or (_PASSES["highest"] if algorithm[1] == "f32" else 1))
        return chip.peak["bf16"] / passes
    if dtype == "f32":
        return chip.peak["bf16"] / _PASSES[operations.precision]
    if dtype.startswith("f8"):
        return chip.peak.get("f8", chip.peak["bf16"])
    if dtype in ("bf16", "f16"):
        return chip.peak["bf16"]
    return chip.peak.get(dtype)
