"""The indices in the parameters of reads and writes of references. Applies to JAX 0.8 to 0.12.

Private API used: `NDIndexer` and `Slice` of `state.indexing`, by the names of their attributes, as
the `tree` of `get`, `swap` and `addupdate` holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.state import indexing

# Newer versions define it elsewhere, but this module still has it.
_SLICE: Any = vars(indexing)["Slice"]


@dataclass(frozen=True, slots=True)
class Range:
    """A slice along one axis; `start` and `size` are numbers, or stand-ins for traced ones."""

    start: object
    size: object
    stride: int
    is_whole: bool
    """Whether it covers the whole axis."""


def indices(tree: object, leaves: Sequence[object]) -> list[Any] | None:
    """Return the indices of a reference's only indexer, with `leaves` for the traced ones.

    An empty list means the whole reference. Return None if there are other transformations.
    """
    transforms = jax.tree.unflatten(tree, leaves)
    if not transforms:
        return []
    if len(transforms) != 1 or not isinstance(transforms[0], indexing.NDIndexer):
        return None
    found: list[Any] = []
    for part, size in zip(transforms[0].indices, transforms[0].shape, strict=True):
        if isinstance(part, _SLICE):
            bounds = (part.start, part.size, part.stride)
            part = Range(*bounds, is_whole=bounds == (0, size, 1))
        found.append(part)
    return found
