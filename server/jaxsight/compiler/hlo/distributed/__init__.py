"""Read what HLO has of distributed programs.

`collectives` describes the communication of kernels and `groups` the devices that communicate,
from optimized HLO; `shardings` reads HLO before it is partitioned, and what XLA logs
while it partitions.
"""
