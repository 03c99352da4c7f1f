"""The devices of a target for the compiling process: present ones or descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from jaxsight.compiler import stand_ins
from jaxsight.compiler.compat import cub, xla
from jaxsight.targets.chips import Gpu, Tpu
from jaxsight.targets.chips.links import HOST
from jaxsight.targets.own import busy
from jaxsight.targets.target import UnknownTarget, parse
from jaxsight.wire.meshes import Distribution

GUESSED = (
    "matmul kernels and tile sizes are XLA's guesses: without the device, it cannot autotune them"
)
SORTS = "large sorts use XLA's own kernels; on the device, XLA may use NVIDIA's CUB instead"
SCRATCH = "the scratch memory of CUB's sorts is XLA's estimate, at most a few percent too high"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Devices with their options for XLA, and notes on differences from present devices."""

    devices: xla.Devices
    options: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def devices(name: str, distribution: Distribution) -> Prepared:
    """Return the devices of a target for a program.

    Raises:
        Refused: there are too few such devices, they are busy, or their plugin is not installed.
    """
    prepared = _devices(name, distribution.devices)
    chosen = prepared.devices.devices[: distribution.devices]
    return replace(
        prepared, devices=replace(prepared.devices, devices=chosen, distribution=distribution)
    )


@cache
def _devices(name: str, count: int) -> Prepared:
    try:
        target = parse(name)
    except UnknownTarget as error:
        raise xla.Refused("target", str(error)) from error
    try:
        match None if target.is_own else target.chip:
            case Gpu() as gpu:
                hosts = -(-count // HOST)
                topology = f"1x{hosts}x{-(-count // hosts)}"
                sorts = cub.is_known(xla.JAXLIB)
                specification = cub.specification(gpu) if sorts else gpu.specification()
                described = xla.described("cuda", topology=topology, target_config=specification)
                return Prepared(
                    described,
                    {"xla_gpu_cuda_data_dir": stand_ins.folder()},
                    (GUESSED, SORTS, SCRATCH),
                )
            case Tpu() as tpu:
                is_whole = count == target.devices
                topology = target.topology if is_whole else tpu.slice_for(count)
                described = xla.described("tpu", topology_name=tpu.described(topology))
                # libtpu refuses some programs for a part of a slice.
                part = f"compiled for a slice of {topology}: the program spans {count} devices of"
                notes = (f"{part} {target.devices}",) if target.topology and not is_whole else ()
                return Prepared(described, notes=notes)
            case None:
                return Prepared(xla.local(target.platform, count))
    except xla.NoDevice as error:
        if target.is_own and (why := busy.problem(str(error))):
            raise xla.Refused("busy", why) from error
        raise xla.Refused("target", str(error)) from error
