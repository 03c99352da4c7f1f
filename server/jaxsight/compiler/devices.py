"""The devices of a target for the compiling process: present ones or descriptions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from jaxsight.compiler import stand_ins
from jaxsight.compiler.compat import xla
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


def devices(name: str, distribution: Distribution) -> xla.Devices:
    """Return the devices of a target for a program.

    Raises:
        Refused: there are too few such devices, they are busy, or their plugin is not installed.
    """
    found = _devices(name, distribution.devices)
    chosen = found.devices[: distribution.devices]
    return replace(found, devices=chosen, distribution=distribution)


@cache
def _devices(name: str, count: int) -> xla.Devices:
    try:
        target = parse(name)
    except UnknownTarget as error:
        raise xla.NotCompilable("target", str(error)) from error
    try:
        match None if target.is_own else target.chip:
            case Gpu() as gpu:
                hosts = -(-count // HOST)
                topology = f"1x{hosts}x{-(-count // hosts)}"
                sorts = sorts_with_cub(xla.JAXLIB)
                specification = _with_cub(gpu) if sorts else gpu.specification()
                described = xla.described("cuda", topology=topology, target_config=specification)
                options = {"xla_gpu_cuda_data_dir": stand_ins.folder()}
                return replace(described, options=options, notes=(GUESSED, SORTS, SCRATCH))
            case Tpu() as tpu:
                is_whole = count == target.devices
                topology = target.topology if is_whole else tpu.slice_for(count)
                described = xla.described("tpu", topology_name=tpu.described(topology))
                # libtpu refuses some programs for a part of a slice.
                part = f"compiled for a slice of {topology}: the program spans {count} devices of"
                notes = (f"{part} {target.devices}",) if target.topology and not is_whole else ()
                return replace(described, notes=notes)
            case None:
                return xla.local(target.platform, count)
    except xla.NoDevice as error:
        if target.is_own and (why := busy.problem(str(error))):
            raise xla.NotCompilable("busy", why) from error
        raise xla.NotCompilable("target", str(error)) from error


# Let XLA sort with CUB for GPUs that are not present, as it does on the device.
#
# This applies to jaxlib 0.10.2 to 0.12; older versions use CUB only if the GPU is present.
#
# XLA replaces a sort by NVIDIA's CUB where that is faster and its comparator is simple
# (`SortRewriter`, `xla/backends/gpu/transforms/sort_rewriter.cc`: thresholds by compute capability,
# key width, rows and length). It needs the size of CUB's scratch memory, which only the device
# tells. Without one, XLA reads it from a table by the GPU's name and CUB's version
# (`CubScratchSizeDevicelessLookup`, `xla/backends/gpu/libraries/cub`), and uses its own sort if the
# description of the GPU lacks either.
#
# The sizes of the table are those of inputs of certain lengths, each 2 % above the last
# (`CreateNumItemsList` in `generate_cub_scratch_size_lib.cu.cc`), so they are upper bounds.


_SINCE = (0, 10, 2)
"""The first jaxlib whose plugin has the table and the option `xla_gpu_deviceless_cub_mode`."""
LONGEST_CUB_SORT = 998_938_956
"""Elements of the longest input in the table."""
_CUB = "3.1.2"
_MEASURED = (
    (10, "NVIDIA B200"),
    (9, "NVIDIA H100 80GB HBM3"),
    (8, "NVIDIA A100-SXM4-40GB"),
    (7, "Tesla V100-SXM2-16GB"),
)
"""GPUs in the tables of jaxlib 0.10.2 to 0.12 by major compute capability, all with `_CUB`.

CUB has one tuning for each of these (`policy_selector` in cccl's `tuning_radix_sort.cuh`), which
decides the size of its scratch memory: other GPUs get that of the newest one before them.
"""


def sorts_with_cub(jaxlib: str) -> bool:
    """Return whether a version of jaxlib can sort with CUB for a GPU that is not present."""
    numbers = jaxlib.split(".")[: len(_SINCE)]
    return tuple(int(number) for number in numbers if number.isdigit()) >= _SINCE


def _with_cub(gpu: Gpu) -> str:
    """Return the text of a GpuTargetConfigProto with sizes for CUB's sorts."""
    title = next(title for major, title in _MEASURED if gpu.generation.major >= major)
    return gpu.specification(title, f'  cub_version: "{_CUB}"\n')
