"""Estimate the minimum time of kernels; these are never measurements.

The roofline model (Williams, Waterman, Patterson: "Roofline: an insightful visual performance
model", CACM 2009): a kernel takes as long as its operations at the chip's peak rate or its bytes at
the chip's bandwidth, whichever is longer.
On a GPU each launch adds a few microseconds; on a TPU all kernels are one program.
A collective takes as long as the links of a device need (`communication`), a transfer between the
host and the device at least as long as the link to the host needs (`host_links`).
There is no estimate for chips without figures, dtypes that a chip has no rate for, and kernels of
unknown work (`graph.Kernel.work`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from jaxsight.targets import communication, host_links
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.chips.gpus import GIGA
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import CALLBACK, Graph, Kernel, Operations

LAUNCH = 3e-6
"""Seconds per launch: NVIDIA reports 2 to 4 µs for short kernels (A. Gray: "Getting Started with
CUDA Graphs", developer.nvidia.com/blog/cuda-graphs, 2019).
"""

LATENCY = 1825
"""Cycles of the shortest vector operation in libtpu's cost model (`estimated_cycles` in its HLO).
Its cycles of longer ones are not used, as they are far above the roofline for vector operations.
"""

_ALGORITHM = re.compile(r"dot_(?:any_)?(f8|bf16|tf32|f16|f32|f64)_\w*?(?:_x(\d))?$")
_PASSES = {"": 1, "high": 3, "highest": 6}
"""Number of bfloat16 products that a TPU computes for a float32 product, by precision
(`jax.lax.Precision`; libtpu's cost model has 2.9 and 5.8 times the cycles).
"""

_AS_FLOAT = {"c64": "f32", "c128": "f64", "u8": "s8", "u4": "s4"}


@dataclass(frozen=True, slots=True)
class Total:
    """Seconds of a whole program; a lower bound if some kernels have no estimate."""

    seconds: float
    is_lower_bound: bool


def estimate(kernel: Kernel, target: Target) -> float | None:
    """Return the seconds of all executions of a kernel, or `None` if unknown."""
    chip = target.chip
    if chip is not None and kernel.collective is not None:
        sending = communication.seconds(kernel, target)
        launching = 0.0 if isinstance(chip, Tpu) else kernel.launches * LAUNCH
        return None if sending is None else sending + launching
    if chip is None or kernel.work is None or kernel.kind == CALLBACK:
        return None
    units: dict[str, float] = {}
    for operations in kernel.work.operations:
        rate = _rate(chip, operations)
        if rate is None:
            return None
        units[operations.unit] = units.get(operations.unit, 0.0) + operations.count / rate
    moving = (kernel.work.read + kernel.work.written) / chip.bandwidth / kernel.work.efficiency
    busy = max(moving, *units.values()) if units else moving
    if isinstance(chip, Tpu):
        latency = min(kernel.work.cycles, LATENCY) / chip.clock if chip.clock else 0.0
        return kernel.runs * max(busy, latency)
    busy = max(busy, kernel.work.cycles / (chip.clock * GIGA))
    return kernel.runs * busy + kernel.launches * LAUNCH


def total(graph: Graph, target: Target) -> Total | None:
    """Return the sum of a program's kernels, or `None` for chips without figures and for branches.

    Loops of unknown length count with no iteration.
    Collectives beside which other kernels run count as hidden by them, but the program takes at
    least as long as all collectives take. The same is true of transfers to and from the host, whose
    time is a lower bound.
    """
    if target.chip is None or graph.branches:
        return None
    if graph.host_transfers:
        device = total(replace(graph, host_transfers=()), target)
        seconds = (device.seconds if device else 0.0) + host_links.waited_for(graph, target)
        return Total(max(seconds, host_links.occupied(graph, target)), is_lower_bound=True)
    times = [
        estimate(kernel, target) if kernel.at_least or not kernel.launches else 0.0
        for kernel in graph.kernels
    ]
    estimates = [seconds for seconds in times if seconds is not None]
    if not estimates:
        return None
    sending = [
        (kernel.collective.is_async, seconds or 0.0)
        for kernel, seconds in zip(graph.kernels, times, strict=True)
        if kernel.collective is not None
    ]
    hidden = [seconds for is_async, seconds in sending if is_async]
    return Total(
        max(sum(estimates) - sum(hidden), sum(seconds for _, seconds in sending)),
        len(estimates) < len(times) or not graph.launches_known or bool(hidden),
    )


def _rate(chip: Gpu | Tpu, operations: Operations) -> float | None:
    if operations.unit == "matrix":
        if isinstance(chip, Tpu):
            return _tpu_matrix(chip, operations)
        return _gpu_matrix(chip, operations)
    return _vector(chip, operations.dtype)


def _vector(chip: Gpu | Tpu, dtype: str) -> float | None:
    """Return the rate of the vector units, with integers and short floats as float32.

    It is infinite on TPUs without a public clock: such work then counts by its memory traffic
    alone, which dominates.
    """
    if isinstance(chip, Tpu) and not chip.clock:
        return math.inf
    return chip.vector.get("f64" if dtype in ("f64", "c128") else "f32")


def _gpu_matrix(chip: Gpu, operations: Operations) -> float | None:
    """Return the rate of a product on a GPU.

    Products of float32 use TF32 if the chip supports it, unless the precision is `highest`
    (`GetBlasComputationType` and `IsTf32Allowed` in XLA's stream_executor and matmul_utils.cc).
    Products of wide integers use the vector units.
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
    """Return the rate of a product on a TPU, whose matrix unit takes bfloat16 and narrower numbers.

    A float32 product is several bfloat16 products; narrower numbers are converted if the chip has
    no rate for them.
    Integers wider than 8 bits have no known rate.
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
