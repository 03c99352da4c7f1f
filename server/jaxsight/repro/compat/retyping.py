"""Abstract values with other shapes and dtypes. Applies to JAX 0.8 to 0.12.

Private API used: `core.ShapedArray`, which has no public constructor.
"""

from __future__ import annotations

from typing import cast

from jax._src import core

from jaxsight.interpreters.compat import avals
from jaxsight.interpreters.compat.jaxpr_types import Aval, DType


def retyped(aval: Aval, shape: tuple[int, ...], dtype: DType) -> Aval:
    """Return an array's type with another shape and dtype; it stays weak or strong.

    Raises:
        TypeError: it is the type of something else, such as a reference.
    """
    if not isinstance(aval, core.ShapedArray):
        raise TypeError(f"{aval} is no type of arrays")
    return cast(Aval, core.ShapedArray(shape, dtype, weak_type=avals.weak(aval)))
