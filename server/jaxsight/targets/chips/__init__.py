"""Chips that can be compiled for without being present: their descriptions for XLA, and figures.

Every figure is public and cites its source.
The figures are plain data, for the server and for compilers.
"""

from jaxsight.targets.chips.gpus import GPUS, Gpu
from jaxsight.targets.chips.kinds import chip_of_kind
from jaxsight.targets.chips.tpus import TPUS, Tpu

__all__ = ["GPUS", "TPUS", "Gpu", "Tpu", "chip_of_kind"]
