"""How much of a target's memories a Pallas kernel may take."""

from __future__ import annotations

from jaxsight.targets.chips.gpus import Gpu
from jaxsight.targets.chips.tpus import Tpu
from jaxsight.targets.target import Target
from jaxsight.wire.program import SHARED, SMEM, VMEM, PallasKernel


def memory_limits(kernel: PallasKernel, target: Target) -> dict[str, int]:
    """Return the bytes that a kernel may take of each memory, where that is known."""
    match target.chip:
        case Tpu() as chip:
            return {VMEM: kernel.vmem_may_be(chip.kernel_vmem, chip.vmem), SMEM: chip.smem}
        case Gpu() as chip if kernel.used(SHARED):
            return {SHARED: chip.generation.shared_per_block}
        case _:
            return {}
