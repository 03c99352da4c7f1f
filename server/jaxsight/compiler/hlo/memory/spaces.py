"""Memory spaces: where XLA stores a value, as the `S(…)` of its layout says.

Sources:
* `kDefaultMemorySpace`, `kGenericFastMemorySpace` and `kHostMemorySpace` in openxla/xla,
  `xla/layout.h`.
* `kCollectiveMemorySpaceColor` and `kTempBufferMemorySpaceColor` in
  `xla/service/gpu/gpu_memory_space_assignment.h`: on GPUs both are memory of the device.
* libtpu is not public; in its HLO, spaces 1 to 4 are those of a TensorCore (vector memory, flags of
  transfers, scalar memory).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from jaxsight.hlo.shapes import HOST_SPACE, KEPT, is_tiled

_SPACE = re.compile(r"S\((\d+)\)")


class Space(Enum):
    """A kind of memory."""

    DEVICE = "device"
    HOST = "host"
    ON_CHIP = "on chip"
    """Vector or scalar memory of a TPU's TensorCore, not its HBM."""


_SPACES: Mapping[str, Mapping[int, Space]] = {
    "tpu": {0: Space.DEVICE, **dict.fromkeys((1, 2, 3, 4), Space.ON_CHIP), HOST_SPACE: Space.HOST},
    "gpu": {0: Space.DEVICE, 1: Space.DEVICE, 2: Space.DEVICE, HOST_SPACE: Space.HOST},
    "cpu": {0: Space.DEVICE, HOST_SPACE: Space.DEVICE},
}
"""Memory spaces by platform. A CPU's device memory is that of the host."""


@lru_cache(maxsize=KEPT)
def space_of(shape: str, platform: str) -> Space:
    """Return where the first array of a type is stored.

    Spaces that no table has are memory of the device on GPUs, and on chip on TPUs.

    Args:
        platform: `cpu`, `cuda`, `rocm` or `tpu`.
    """
    number = int(match[1]) if (match := _SPACE.search(shape)) is not None else 0
    known = _SPACES.get(platform, _SPACES["gpu"])
    return known.get(number, Space.ON_CHIP if platform == "tpu" else Space.DEVICE)


def is_on_chip(shape: str) -> bool:
    """Return whether a value is in a TPU's vector or scalar memory, not in its HBM."""
    return space_of(shape, "tpu" if is_tiled(shape) else "cuda") is Space.ON_CHIP
