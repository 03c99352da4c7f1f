"""The device of a target, in the process that compiles: the one that is here, or a description of
one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from jaxsight.compiler import stand_ins
from jaxsight.compiler.chips import Gpu, Tpu
from jaxsight.compiler.compat import xla
from jaxsight.compiler.targets import UnknownTarget, parse

GUESSED = (
    "autotuned choices (which matmul kernel, which tiles) are XLA's guesses: they are measured on "
    "a device only"
)
SORTS = "large sorts are kernels of XLA's own; on a device they may be NVIDIA's CUB's"


class NotHere(Exception):
    """This process cannot compile for the target; the text says why."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A device, XLA's options that go with it, and what differs from a compile on the device
    itself.
    """

    device: xla.Device
    options: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@cache
def device(name: str) -> Prepared:
    """The device of a target.

    Raises:
        NotHere: there is none, or its plugin is not installed.
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
