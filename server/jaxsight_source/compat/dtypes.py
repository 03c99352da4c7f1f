"""Dtypes that NumPy does not know: those of typed PRNG keys. Applies to JAX 0.8 to 0.12.

Private API used: the implementation of a key dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from jaxsight_source.compat.jaxpr_types import DType

is_subtype: Callable[[object, object], bool] = getattr(jax.dtypes, "issubdtype")  # noqa: B009
"""`numpy.issubdtype` that also knows JAX's dtypes."""


def is_key(aval: object) -> bool:
    """Return whether an abstract value is an array of typed PRNG keys."""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and is_subtype(dtype, jax.dtypes.prng_key)


def key_impl(dtype: DType) -> str:
    """Return the name of a key dtype's implementation, as `jax.random.key(impl=…)` takes it."""
    implementation = getattr(dtype, "_impl")  # noqa: B009 - of JAX's extended dtypes only
    return str(implementation.name)
