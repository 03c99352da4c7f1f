"""Chips that can be compiled for without being present: their descriptions for XLA, and figures.

Every figure is public and cites its source.
The figures are plain data, for the server and for compilers.
"""

from __future__ import annotations

from functools import cache

from jaxsight.targets.chips.gpus import GPUS, Gpu
from jaxsight.targets.chips.tpus import TPUS, Tpu

# Recognize a chip by the name that its driver and JAX's `device_kind` have for it.
#
# Only a chip with the same figures is recognized: an `NVIDIA H100 PCIe` or a part of a GPU (MIG) is
# not an `NVIDIA H100 80GB HBM3`, and has no figures rather than wrong ones.


def chip_of_kind(device_kind: str) -> Gpu | Tpu | None:
    """Return the chip with a `device_kind` such as `NVIDIA H200`; `None` without its figures."""
    return _chips().get(_unbranded(device_kind))


@cache
def _chips() -> dict[str, Gpu | Tpu]:
    """Return the chips by their names; TPUs have two (`jax/_src/tpu_info.py`)."""
    tpus = {name: tpu for tpu in TPUS.values() for name in (tpu.kind, tpu.title)}
    return {**tpus, **{_unbranded(gpu.kind): gpu for gpu in GPUS.values()}}


def _unbranded(title: str) -> str:
    """Return a GPU's name without its maker's: drivers before 470 wrote `A100-SXM4-80GB`."""
    return title.removeprefix("NVIDIA ")


__all__ = ["GPUS", "TPUS", "Gpu", "Tpu", "chip_of_kind"]
