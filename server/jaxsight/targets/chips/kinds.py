"""Recognize a chip by the name that its driver and JAX's `device_kind` have for it.

Only a chip with the same figures is recognized: an `NVIDIA H100 PCIe` or a part of a GPU (MIG) is
not an `NVIDIA H100 80GB HBM3`, and has no figures rather than wrong ones.
"""

from __future__ import annotations

from functools import cache

from jaxsight.targets.chips.gpus import GPUS, Gpu
from jaxsight.targets.chips.tpus import TPUS, Tpu

_TPUS = {
    "TPU v4": "v4",
    "TPU v5 lite": "v5e",
    "TPU v5e": "v5e",
    "TPU v5": "v5p",
    "TPU v5p": "v5p",
    "TPU v6 lite": "v6e",
    "TPU v6e": "v6e",
    "TPU7x": "7x",
}
"""libtpu's device kinds (`jax/_src/mesh_utils.py`, `jax/_src/pallas/mosaic/tpu_info.py`)."""


def chip_of_kind(kind: str) -> Gpu | Tpu | None:
    """Return the chip with a `device_kind` such as `NVIDIA H200`; `None` without its figures."""
    return TPUS.get(_TPUS.get(kind, "")) or _gpus().get(_unbranded(kind))


@cache
def _gpus() -> dict[str, Gpu]:
    return {_unbranded(gpu.title): gpu for gpu in GPUS.values()}


def _unbranded(title: str) -> str:
    """Return a GPU's name without its maker's: drivers before 470 wrote `A100-SXM4-80GB`."""
    return title.removeprefix("NVIDIA ")
