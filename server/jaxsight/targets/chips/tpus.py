"""Google's TPUs.

libtpu knows the chips by the names of their topologies; the figures are for the roofline alone.

Sources:
* [cloud]: the page of each version in Google Cloud's TPU documentation ("System architecture", per
  chip).
* [book]: Austin et al., "How to Scale Your Model", jax-ml.github.io/scaling-book, "How to Think
  About TPUs" (clocks; its appendix A: 8 x 128 lanes with 4 units each in the vector unit of a
  TensorCore).
* [pallas]: `jax/_src/tpu_info.py` of JAX 0.12 (`vmem_capacity_bytes`, `smem_capacity_bytes`).
* [libtpu]: the limit that libtpu 0.0.52 names when it refuses a kernel without `vmem_limit_bytes`;
  of v4, all of its VMEM.
* [isca]: Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer", ISCA 2023, table 4
  (clock, two TensorCores).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.targets.chips.gpus import GIGA, TERA


@dataclass(frozen=True, slots=True)
class Tpu:
    """A chip.

    Bandwidth in bytes per second, peak rates in operations per second by the dtype of a matmul's
    operands.
    """

    name: str
    title: str
    topology: str
    """The smallest slice that libtpu can describe on every machine."""
    bandwidth: float
    memory: int
    peak: Mapping[str, float] = field(hash=False)
    """Rates of the matrix units."""
    clock: float = 0.0
    """Hz; 0 without a public figure."""
    cores: int = 1
    """TensorCores."""
    devices: int = 1
    """JAX's devices of a chip, as libtpu describes a slice."""
    vmem: int = 0
    """Bytes of a TensorCore's VMEM [pallas]."""
    kernel_vmem: int = 0
    """The bytes of VMEM that a Pallas kernel may take if it asks for no others [libtpu]."""
    smem: int = 2**20
    """Bytes of a TensorCore's SMEM [pallas]."""
    platform: str = "tpu"

    @property
    def kind(self) -> str:
        """JAX's `device_kind`, as libtpu 0.0.42 describes the chip's topology."""
        return _KINDS.get(self.name, self.title)

    @property
    def cores_of_device(self) -> int:
        """The TensorCores of one of JAX's devices, as libtpu 0.0.42 describes a slice."""
        return max(self.cores // self.devices, 1)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a slice: 2 or 3 [cloud]."""
        return self.topology.count("x") + 1

    def slice_for(self, devices: int) -> str:
        """Return the smallest slice that has a number of devices, such as `4x4`.

        Its sides are doubled in turn, as those of the slices that can be had are [cloud].
        """
        smallest = self.topology.partition(":")[2]
        sides = [int(side) for side in smallest.split("x")]
        while math.prod(sides) * self.devices < devices:
            # The last of the shortest sides: 2x2, 2x4, 4x4; 2x2x1, 2x2x2, 2x2x4, 2x4x4.
            at = min(range(len(sides)), key=lambda side: (sides[side], -side))
            sides[at] *= 2
        return "x".join(map(str, sides))

    def described(self, topology: str) -> str:
        """Return libtpu's name of a slice: `v5e:4x4`."""
        return f"{self.topology.partition(':')[0]}:{topology}"

    @property
    def vector(self) -> Mapping[str, float]:
        """Peak rate of the vector units in operations per second [book]: `f32`, or none."""
        return {"f32": 8 * 128 * 4 * self.cores * self.clock} if self.clock else {}


_KINDS = {"v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite"}
"""Where it differs from the title."""

_ALL = (
    Tpu(
        "v4", "TPU v4", "v4:2x2x1", 1228 * GIGA, 32 * 2**30,
        {"bf16": 275 * TERA, "s8": 275 * TERA},  # [cloud] "bf16 or int8"
        clock=1.05 * GIGA, cores=2,  # [isca]
        devices=2, vmem=16 * 2**20, kernel_vmem=16 * 2**20,
    ),
    Tpu(
        "v5e", "TPU v5e", "v5e:2x2", 819 * GIGA, 16 * 2**30,
        {"bf16": 197 * TERA, "s8": 393 * TERA},  # [cloud]
        clock=1.5 * GIGA,  # [book]
        vmem=128 * 2**20, kernel_vmem=16 * 2**20,
    ),
    Tpu(
        "v5p", "TPU v5p", "v5p:2x2x1", 2765 * GIGA, 95 * 2**30,
        {"bf16": 459 * TERA, "s8": 918 * TERA},  # [cloud]
        clock=1.75 * GIGA, cores=2,  # [book]
        vmem=64 * 2**20, kernel_vmem=16 * 2**20,
    ),
    Tpu(
        "v6e", "TPU v6e", "v6e:2x2", 1640 * GIGA, 32 * 2**30,
        {"bf16": 918 * TERA, "s8": 1836 * TERA},  # [cloud]
        vmem=128 * 2**20, kernel_vmem=32 * 2**20,
    ),
    Tpu(
        "7x", "TPU7x", "tpu7x:2x2x1", 7370 * GIGA, 192 * 2**30,
        {"bf16": 2307 * TERA, "f8": 4614 * TERA},  # [cloud]
        devices=2, vmem=64 * 2**20, kernel_vmem=32 * 2**20,
    ),
)  # fmt: skip

TPUS: Mapping[str, Tpu] = {tpu.name: tpu for tpu in _ALL}
"""TPUs by name, in the order in which they are listed."""
