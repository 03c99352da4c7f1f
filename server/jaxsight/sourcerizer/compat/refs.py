"""What reads and writes of references keep in their parameters. Holds for JAX 0.8 to 0.12.

Private API used: `NDIndexer` and `Slice` of `state.indexing`, by the names of their attributes, as
the `tree` of `get`, `swap` and `addupdate` holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.state import indexing

# Newer versions define it elsewhere, and this module has it still.
_SLICE: Any = vars(indexing)["Slice"]


@dataclass(frozen=True, slots=True)
class Range:
    """A slice along one axis; `start` and `size` are numbers, or what stands for a traced one."""

    start: Any
    size: Any
    stride: int
    whole: bool
    """Whether it is all of the axis."""


def indices(tree: Any, leaves: Sequence[Any]) -> list[Any] | None:
    """Indices of the only indexer of a reference, with `leaves` for the traced ones; None where
    there are other transformations.

    An empty list means the whole reference.
    """
    transforms = jax.tree.unflatten(tree, leaves)
    if not transforms:
        return []
    if len(transforms) != 1 or not isinstance(transforms[0], indexing.NDIndexer):
        return None
    indexer = transforms[0]
    return [
        _range(part, size) if isinstance(part, _SLICE) else part
        for part, size in zip(indexer.indices, indexer.shape, strict=True)
    ]


def _range(part: Any, size: int) -> Range:
    whole = _is(part.start, 0) and _is(part.size, size) and part.stride == 1
    return Range(part.start, part.size, part.stride, whole)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number
