"""Explain that the machine's own device is full, or that another process uses it."""

from __future__ import annotations

import re

from jaxsight.targets.target import Target

_FULL = re.compile(
    r"CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|out of memory while trying to allocate"
    r"|failed to allocate (?:request for )?[\d.]",
    re.IGNORECASE,
)
"""`cuda_executor.cc` and `rocm_executor.cc` of `xla/stream_executor`, and the allocators of
`xla/tsl/framework` and `xla/pjrt`. XLA's `RESOURCE_EXHAUSTED` alone may be about shared memory.
"""
_EXCLUSIVE = re.compile(r"CUDA_ERROR_DEVICE_UNAVAILABLE|busy or unavailable|hipErrorContextIs")
"""A GPU of which the compute mode allows one process (`nvidia-smi --compute-mode`)."""
_PROCESS = re.compile(r"already in use by process with pid (\d+)")
_IN_USE = re.compile(
    r"libtpu\S* (?:is )?already in use|(?:accel|vfio)\S* .*resource busy", re.IGNORECASE
)
"""`tensorflow/core/tpu/tpu_initializer_helper.cc`, and libtpu's own words for the device files."""


def problem(message: str) -> str:
    """Return why a device cannot be used now, as a predicate; empty for other errors.

    Args:
        message: XLA's own message.
    """
    if (process := _PROCESS.search(message)) is not None:
        return f"is in use by process {process[1]}"
    if _IN_USE.search(message) or _EXCLUSIVE.search(message):
        return "is in use by another process"
    if _FULL.search(message):
        return "has too little free memory to compile"
    return ""


def explained(problem: str, target: Target) -> str:
    """Return a problem in a clause, and what to do.

    Args:
        problem: the predicate.
        target: the machine's own device.
    """
    remedy = f"wait until it is free, or choose {target.instead}, which needs no device"
    return f"{target.title} {problem}; {remedy}"
