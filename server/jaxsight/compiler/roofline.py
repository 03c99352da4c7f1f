"""How long a kernel takes at best: an estimate, never a measurement.

The roofline model (Williams, Waterman, Patterson: "Roofline: an insightful visual performance model", CACM 2009): a kernel takes as long as its operations at the chip's
peak rate, or as its bytes at the chip's bandwidth, whichever is longer; to which a launch adds a few microseconds.
"""

from __future__ import annotations

import re

from jaxsight.compiler.graph import Kernel
from jaxsight.compiler.targets import Target

LAUNCH = 3e-6
"""Seconds of a launch: what NVIDIA's documentation of CUDA graphs gives for short kernels, 2 to 4 µs."""

_MATMUL = ("matmul", "convolution", "attention")
_DTYPE = re.compile(r"[a-z]+\d*")


def estimate(kernel: Kernel, target: Target) -> float | None:
    """Seconds of all launches of a kernel; `None` for chips without figures."""
    chip = target.chip
    if chip is None:
        return None
    rate = chip.peak.get(_rate(kernel), 0.0) or max(chip.peak.values())
    moving = (kernel.bytes_in + kernel.bytes_out) / chip.bandwidth
    return kernel.launches * (max(kernel.flops / rate, moving) + LAUNCH)


def _rate(kernel: Kernel) -> str:
    """Which peak rate holds: tensor cores do matmuls, by the dtype of what goes in; everything else is done by the plain units."""
    if not any(word in kernel.what for word in _MATMUL) or not kernel.inputs:
        return "f32"
    found = _DTYPE.match(kernel.inputs[0].text)
    dtype = found[0] if found else "f32"
    if dtype.startswith("f8"):
        return "f8"
    return "tf32" if dtype == "f32" else dtype
