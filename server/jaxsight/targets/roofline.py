"""Estimate how long kernels take; these are never measurements.

The roofline model (Williams, Waterman, Patterson: "Roofline: an insightful visual performance
model", CACM 2009): a kernel takes as long as its operations on their unit or its bytes to memory,
whichever is longer.
Its rates are those that kernels reached on an H100: the peak of the data sheet times an efficiency
(`docs/estimates.md` compares with all measured programs). For other GPUs the same efficiencies are
assumed.
On a GPU each launch takes a minimum time; on a TPU all kernels are one program.
A collective takes as long as the links of a device need, a transfer between the host and the device
at least as long as the link to the host needs (`communication`).
There is no estimate for chips without figures, dtypes that a chip has no rate for, and kernels of
unknown work (`graph.Kernel.work`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxsight.targets import communication
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.chips.gpus import GIGA
from jaxsight.targets.chips.instructions import instructions
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import CALLBACK, Graph, Kernel
from jaxsight.wire.kernel_work import Operations, Work

LAUNCH = 1.05e-6
"""Seconds of the shortest kernel on a GPU: `x + 1` of one element on an H100.

What the host needs to launch it is not included: it launches the next ones meanwhile.
"""

_RAMP = 1.2e-6
_RAMP_RATE = 1.7e12
"""A kernel waits for its first bytes, up to 1.2 µs: 2^16 and 2^18 float32 are copied in 1.5 and
2.3 µs."""

_MEMORY = 0.91
"""The share of a GPU's bandwidth that kernels reach: 2^28 float32 are copied in 707 µs."""
_L2_FULL, _L2_NONE = 0.7, 2.0
"""A kernel whose bytes are up to this share of the L2 cache finds them there, from the other on it
finds none: 2^22 float32 (32 MiB in and out of 50) are copied at the cache's rate, 2^24 are not."""

_TENSOR = 0.82
"""The share of the peak that products reach on a GPU: bf16 and f32 of 4096^3 and 8192^3 on an H100
0.81 to 0.88, in larger programs 0.82."""
_CONVOLUTION = 0.7
"""The same of convolutions, with the padding of their tiles: 0.70 to 0.75."""
_BYTES = 0.76
"""The same of 8-bit numbers: int8 of 4096^3 on an H100 in 92 µs."""
_VECTOR_PRODUCT = 0.78
"""The same of products in full float32 on the vector units: 4096^3 in 2647 µs."""
_TPU_MATRIX = 0.88
"""The same on a TPU: 0.84 and 0.92 for 4096^3 and 8192^3 on a v5e, as JAX publishes."""

_CERTAIN = 1.5
"""Up to this ratio of both ends of a range the lower one is shown as the estimate, a choice: nearly
all measured programs are within 2 (`docs/estimates.md`)."""

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
    at_most: float | None = None
    """Seconds if all indices of its scatters are equal; `None` if unknown."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The seconds of all executions of a kernel; they differ for scatters.

    Updates of equal indices wait for one another, and which are equal is not known before.
    """

    least: float
    """With indices that all differ."""
    most: float | None
    """With indices that are all equal; `None` if unknown."""

    @property
    def is_certain(self) -> bool:
        """Whether the two are so close that the first one is an estimate."""
        return self.most is not None and self.most <= _CERTAIN * self.least


def estimate(kernel: Kernel, target: Target) -> float | None:
    """Return the seconds of all executions of a kernel, or `None` if unknown."""
    found = bounds(kernel, target)
    return found.least if found is not None and found.is_certain else None


def together(kernels: Iterable[Kernel], target: Target) -> float | None:
    """Return the seconds of some kernels, or `None` if there are none, or one is unknown."""
    times = [estimate(kernel, target) for kernel in kernels]
    known = [seconds for seconds in times if seconds is not None]
    return sum(known) if known and len(known) == len(times) else None


def bounds(kernel: Kernel, target: Target) -> Bounds | None:
    """Return the seconds of all executions of a kernel as a range, or `None` if unknown."""
    seconds, chip = _seconds(kernel, target), target.chip
    if seconds is None:
        return None
    atomics = kernel.work.atomics if kernel.work is not None else None
    if atomics is None or not isinstance(chip, Gpu):
        return Bounds(seconds, seconds)
    if chip.measured is None or not atomics.serial:
        return Bounds(seconds, None)
    serial = kernel.runs * atomics.serial / chip.measured.atomics_in_sector
    return Bounds(seconds, max(seconds, serial))


def _seconds(kernel: Kernel, target: Target) -> float | None:
    chip = target.chip
    if chip is not None and kernel.collective is not None:
        sending = communication.seconds(kernel, target)
        launching = 0.0 if isinstance(chip, Tpu) else kernel.launches * LAUNCH
        return None if sending is None else sending + launching
    if chip is None or kernel.work is None or kernel.kind == CALLBACK:
        return None
    if isinstance(chip, Tpu):
        units = _units(kernel.work, chip)
        if units is None:
            return None
        moving = (kernel.work.read + kernel.work.written) / chip.bandwidth
        latency = min(kernel.work.cycles, LATENCY) / chip.clock if chip.clock else 0.0
        return kernel.runs * max(moving, latency, *units.values())
    busy = _on_gpu(kernel.work, chip, kernel.bytes_in + kernel.bytes_out)
    return None if busy is None else kernel.runs * busy + kernel.launches * LAUNCH


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
        seconds = (device.seconds if device else 0.0) + communication.waited_for(graph, target)
        return Total(max(seconds, communication.occupied(graph, target)), is_lower_bound=True)
    times = [
        bounds(kernel, target) if kernel.at_least or not kernel.launches else Bounds(0.0, 0.0)
        for kernel in graph.kernels
    ]
    estimates = [each for each in times if each is not None]
    if not estimates:
        return None
    sending = [
        (kernel.collective.is_async, each.least if each is not None else 0.0)
        for kernel, each in zip(graph.kernels, times, strict=True)
        if kernel.collective is not None
    ]
    hidden = [seconds for is_async, seconds in sending if is_async]
    least = sum(each.least for each in estimates) - sum(hidden)
    least = max(least, sum(seconds for _, seconds in sending))
    longest = [each.most for each in estimates if each.most is not None]
    known = len(longest) == len(times) and graph.trips_known and not hidden
    found = Bounds(least, sum(longest) if known else None)
    return Total(least, not found.is_certain, found.most)


def _on_gpu(work: Work, chip: Gpu, whole: int = 0) -> float | None:
    """Return the seconds of one run, or `None` if a dtype has no rate.

    Args:
        whole: the bytes of its inputs and results, of which it may read and write parts.
    """
    units = _units(work, chip)
    before = 0.0 if work.before is None else _on_gpu(work.before, chip)
    if units is None or before is None:
        return None
    idle = max(1.0, chip.cores / work.blocks) if work.blocks else 1.0
    updating = 0.0
    if work.atomics is not None and chip.measured is not None:
        updating = work.atomics.sectors / chip.measured.atomic_sectors
    moved = work.read + work.written
    moving = _moving(moved, max(moved, whole), chip) * max(1.0, _MEMORY / work.efficiency)
    if work.read > _L2_FULL * chip.l2 or chip.measured is None:
        moving += work.repeated / (_MEMORY * chip.bandwidth)
    else:
        moving = max(moving, work.repeated / chip.measured.l2)
    waiting = max(min(_RAMP, moved / _RAMP_RATE), work.cycles / (chip.clock * GIGA))
    return before + max(moving, waiting, updating, *(idle * each for each in units.values()), 0.0)


def _moving(moved: int, whole: int, chip: Gpu) -> float:
    """Return the seconds in which bytes are moved, in the L2 cache if the whole arrays fit."""
    slow = moved / (_MEMORY * chip.bandwidth)
    if chip.measured is None:
        return slow
    share = (whole / chip.l2 - _L2_FULL) / (_L2_NONE - _L2_FULL)
    missed = min(1.0, max(0.0, share))
    return missed * slow + (1 - missed) * moved / chip.measured.l2


def at_peak(work: Work, target: Target) -> float | None:
    """Return the seconds of one run's operations at the rates of the chip's data sheet.

    They are those of the unit that is busy the longest; `None` if a rate is not known, or without
    operations.
    """
    units = _units(work, target.chip, at_peak=True) if target.chip is not None else None
    return max(units.values()) or None if units else None


def _units(work: Work, chip: Gpu | Tpu, *, at_peak: bool = False) -> dict[str, float] | None:
    """Return the seconds of each unit, or `None` if it has no rate for a dtype.

    Args:
        work: the operations.
        chip: the chip.
        at_peak: whether the rates are those of the data sheet, not those that kernels reach.
    """
    units: dict[str, float] = {}
    for operations in work.operations:
        rate = _rate(chip, operations, at_peak=at_peak)
        if rate is None:
            return None
        count = (0 if at_peak else operations.padded) or operations.count
        units[operations.unit] = units.get(operations.unit, 0.0) + count / rate
    return units


def _rate(chip: Gpu | Tpu, operations: Operations, *, at_peak: bool) -> float | None:
    if operations.unit == "matrix":
        if isinstance(chip, Tpu):
            rate, reached = _tpu_matrix(chip, operations), _TPU_MATRIX
        else:
            rate, reached = _gpu_matrix(chip, operations)
        return rate if rate is None or at_peak else reached * rate
    rate = _vector(chip, operations.dtype)
    if rate is None or isinstance(chip, Tpu):
        return rate
    return rate / instructions(operations.opcode, operations.dtype)


def _vector(chip: Gpu | Tpu, dtype: str) -> float | None:
    """Return the rate of the vector units, with integers and short floats as float32.

    It is infinite on TPUs without a public clock: such work then counts by its memory traffic
    alone, which dominates.
    """
    if isinstance(chip, Tpu) and not chip.clock:
        return math.inf
    return chip.vector.get("f64" if dtype in ("f64", "c128") else "f32")


def _gpu_matrix(chip: Gpu, operations: Operations) -> tuple[float | None, float]:
    """Return the peak rate of a product on a GPU, and the share of it that kernels reach.

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
    rate = chip.peak.get(dtype)
    if dtype in ("s16", "u16", "s32", "u32", "s64", "u64", "pred", "f64") and rate is None:
        rate = 2 * (_vector(chip, dtype) or 0.0)
        efficiency = _VECTOR_PRODUCT
    elif dtype == "f32":
        efficiency = _VECTOR_PRODUCT
    elif dtype in ("s8", "s4", "f8"):
        efficiency = _BYTES
    else:
        efficiency = _CONVOLUTION if operations.padded else _TENSOR
    return rate / passes if rate is not None else None, efficiency


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
