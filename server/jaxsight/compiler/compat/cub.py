"""Let XLA sort with CUB for GPUs that are not present, as it does on the device.

This applies to jaxlib 0.10.2 to 0.12; older versions use CUB only if the GPU is present.

XLA replaces a sort by NVIDIA's CUB where that is faster and its comparator is simple
(`SortRewriter`, `xla/backends/gpu/transforms/sort_rewriter.cc`: thresholds by compute capability,
key width, rows and length). It needs the size of CUB's scratch memory, which only the device tells.
Without one, XLA reads it from a table by the GPU's name and CUB's version
(`CubScratchSizeDevicelessLookup`, `xla/backends/gpu/libraries/cub`), and uses its own sort if the
description of the GPU lacks either.

The sizes of the table are those of inputs of certain lengths, each 2 % above the last
(`CreateNumItemsList` in `generate_cub_scratch_size_lib.cu.cc`), so they are upper bounds.
"""

from __future__ import annotations

from jaxsight.targets.chips import Gpu

SINCE = (0, 10, 2)
"""The first jaxlib whose plugin has the table and the option `xla_gpu_deviceless_cub_mode`."""
LONGEST = 998_938_956
"""Elements of the longest input in the table."""
_VERSION = "3.1.2"
_MEASURED = (
    (10, "NVIDIA B200"),
    (9, "NVIDIA H100 80GB HBM3"),
    (8, "NVIDIA A100-SXM4-40GB"),
    (7, "Tesla V100-SXM2-16GB"),
)
"""GPUs in the tables of jaxlib 0.10.2 to 0.12 by major compute capability, all with `_VERSION`.

CUB has one tuning for each of these (`policy_selector` in cccl's `tuning_radix_sort.cuh`), which
decides the size of its scratch memory: other GPUs get that of the newest one before them.
"""


def is_known(jaxlib: str) -> bool:
    """Return whether a version of jaxlib can sort with CUB for a GPU that is not present."""
    numbers = jaxlib.split(".")[: len(SINCE)]
    return tuple(int(number) for number in numbers if number.isdigit()) >= SINCE


def specification(gpu: Gpu) -> str:
    """Return the text of a GpuTargetConfigProto with sizes for CUB's sorts."""
    title = next(title for major, title in _MEASURED if gpu.generation.major >= major)
    return gpu.specification(title, f'  cub_version: "{_VERSION}"\n')
