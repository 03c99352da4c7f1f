"""What code says of the type of unknown data: a rank, sizes or a dtype, and no more.

An operation on unknown data is traced with several types that the data may have. What all results
agree on is known of its result: `one_hot(y, 10)` has a dtype, `x.sum()` a shape.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax
import numpy as np

from jaxsight.text.unknown_sizes import TRIED
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import DType

_RANKS = (0, 1, 3)
"""Ranks that are tried for data of any rank, a choice: what these agree on, others do as well."""
_DTYPES = tuple(map(np.dtype, ("float32", "int32", "uint8")))
"""Dtypes that are tried, a choice: files rarely have others, apart from their widths."""
_TRIED = 9  # combinations: two arguments of three types
_FAILED = object()
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class PartialType:
    """What is known of an array: its sizes, with `None` for an unknown one, and its dtype."""

    shape: tuple[int | None, ...] | None = None
    dtype: DType | None = None
    ranks: tuple[int, ...] = ()
    """The ranks that it may have, if the shape is not known; empty: any."""

    def shapes(self) -> Iterator[tuple[int, ...]]:
        """Yield shapes that it may have."""
        if self.shape is not None:
            yield tuple(TRIED[0] if size is None else size for size in self.shape)
            return
        for rank in self.ranks or _RANKS:
            yield TRIED[:rank]

    def dtypes(self) -> tuple[DType, ...]:
        """Return dtypes that it may have."""
        return _DTYPES if self.dtype is None else (self.dtype,)


ANY = PartialType()


def agreed(function: Callable[..., object], types: Sequence[PartialType]) -> object:
    """Return a tree with what is known of a function's results; `None` if that is nothing.

    Args:
        function: a function of arrays.
        types: what is known of its arguments.
    """
    shapes = [*itertools.islice(itertools.product(*(t.shapes() for t in types)), _TRIED)]
    dtypes = [*itertools.islice(itertools.product(*(t.dtypes() for t in types)), _TRIED)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for best in dtypes[:2]:  # of an index only the second one fits
            of_shapes = [_result(function, each, best) for each in shapes]
            works = next((s for s, r in zip(shapes, of_shapes, strict=True) if _is_tree(r)), None)
            if works is not None:
                break
        else:
            return None
        of_dtypes = [*filter(_is_tree, (_result(function, works, each) for each in dtypes))]
        others = dict(zip(TRIED, TRIED[3:], strict=False))
        other = tuple(tuple(others.get(size, size) for size in shape) for shape in works)
        of_shapes.append(_result(function, other, best))
    found = [*filter(_is_tree, of_shapes), *of_dtypes]
    if len(set(map(jax.tree.structure, found))) != 1:
        return None
    fits = all(map(_is_tree, of_shapes))
    is_ranked = fits and all(each.shape is not None or each.ranks for each in types)
    leaves = []
    for of_leaf in zip(*map(jax.tree.leaves, found), strict=True):
        ranks = {len(each.shape) for each in of_leaf}
        by_axis = zip(*(each.shape for each in of_leaf), strict=len(ranks) == 1)
        shape = tuple(map(_common, by_axis)) if fits and len(ranks) == 1 else None
        dtype = _common(each.dtype for each in of_leaf[len(of_leaf) - len(of_dtypes) :])
        leaves.append(PartialType(shape, dtype, tuple(sorted(ranks)) if is_ranked else ()))
    return jax.tree.unflatten(jax.tree.structure(found[0]), leaves)


def _result(
    function: Callable[..., object], shapes: Iterable[tuple[int, ...]], dtypes: Iterable[DType]
) -> object:
    """Return the types of a function's results; `_FAILED` if it fails."""
    given = [avals.struct(s, d) for s, d in zip(shapes, dtypes, strict=True)]
    try:
        return jax.eval_shape(function, *given)
    except Exception:  # noqa: BLE001 - user code, or an operation that does not fit
        return _FAILED


def _is_tree(result: object) -> bool:
    return result is not _FAILED


def _common(values: Iterable[_Item]) -> _Item | None:
    first, *others = dict.fromkeys(values)
    return None if others else first
