"""Chips that can be compiled for without having one: what XLA must know of them, and the figures of
the roofline.

Every figure is a public one and says where it is from. Plain data, for the server and for
compilers.
"""

from jaxsight.compiler.chips.gpus import GPUS, Gpu
from jaxsight.compiler.chips.tpus import TPUS, Tpu

__all__ = ["GPUS", "TPUS", "Gpu", "Tpu"]
