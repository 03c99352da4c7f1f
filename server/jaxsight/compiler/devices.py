"""The device of a target for the compiling process: a present one or a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from jaxsight.compiler import stand_ins
from jaxsight.compiler.compat import xla
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.target import UnknownTarget, parse

GUESSED = (
    "matmul kernels and tile sizes are XLA's guesses: without the device, it cannot autotune them"
)
SORTS = "large sorts use XLA's own kernels; on the device, XLA may use NVIDIA's CUB instead"


class NotHere(Exception):
    """This process cannot compile for the target; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A device with its options for XLA, and notes on differences from a present device."""

    device: xla.Device
    options: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@cache
def device(name: str) -> Prepared:
    """Return the device of a target.

    Raises:
        NotHere: there is no such device, or its plugin is not installed.
    """
    try:
        target = parse(name)
        match target.chip:
            case Gpu() as gpu:
                described = xla.described("cuda", topology="1x1x1", target_config=gpu.specification)
                return Prepared(
                    described, {"xla_gpu_cuda_data_dir": stand_ins.folder()}, (GUESSED, SORTS)
                )
            case Tpu() as tpu:
                return Prepared(xla.described("tpu", topology_name=tpu.topology))
            case None:
                return Prepared(xla.local(target.platform))
    except (xla.NoDevice, UnknownTarget) as error:
        raise NotHere(str(error)) from error
