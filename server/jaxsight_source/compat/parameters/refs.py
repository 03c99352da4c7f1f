"""The views in the parameters of reads and writes of references. Applies to JAX 0.8 to 0.12.

Private API used: `NDIndexer` and `Slice` of `state.indexing`, and the other transformations of
`state.types`, by the names of their attributes, as the `tree` of `get`, `swap` and `addupdate`
holds them, and as `args_tree` and `tree` of the primitives of Pallas do.
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
    length: int
    """The axis's length."""

    @property
    def is_whole(self) -> bool:
        """Whether it covers the whole axis."""
        return (self.start, self.size, self.stride) == (0, self.length, 1)


@dataclass(frozen=True, slots=True)
class Indexed:
    """`ref.at[…]`."""

    indices: tuple[object, ...]
    """A `Range`, a number or a stand-in for each axis."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """A method of a reference that returns another view, such as `ref.reshape((8, 128))`."""

    method: str
    argument: object


RefView = Indexed | Viewed

_METHODS = {
    "BitcastTransform": ("bitcast", "dtype"),
    "RefBitcaster": ("bitcast", "dtype"),
    "ReshapeTransform": ("reshape", "shape"),
    "RefReshaper": ("reshape", "shape"),
    "TransposeTransform": ("transpose", "permutation"),
    "RefTransposer": ("transpose", "permutation"),
}
"""The methods of references, and the attribute with the argument, by the transformation's class."""


def unflattened(tree: Any, leaves: Sequence[object]) -> Any:
    """Return the tree that a primitive's parameter describes, with `leaves`."""
    if isinstance(tree, jax.tree_util.PyTreeDef):
        return jax.tree.unflatten(tree, leaves)
    return tree.unflatten(list(leaves))  # a `FlatTree`, since 0.11


def parted(reference: Any) -> tuple[Any, Sequence[object]]:
    """Return a reference and its transformations, from what DMAs hold: a `TransformedRef`."""
    if isinstance(reference, tuple) and len(reference) == 2:
        return reference
    return getattr(reference, "ref", reference), getattr(reference, "transforms", ())


def views(transforms: Sequence[object]) -> list[RefView] | None:
    """Return what transformations of a reference do, in order; None if one is unknown."""
    found: list[RefView] = []
    for transform in transforms:
        if isinstance(transform, indexing.NDIndexer):
            found.append(Indexed(tuple(map(_index, transform.indices, transform.shape))))
            continue
        method, attribute = _METHODS.get(type(transform).__name__, ("", ""))
        if not method or not hasattr(transform, attribute):
            return None
        found.append(Viewed(method, getattr(transform, attribute)))
    return found


def _index(part: Any, length: int) -> object:
    return Range(part.start, part.size, part.stride, length) if isinstance(part, _SLICE) else part
