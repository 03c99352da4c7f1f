"""Text and properties of JAX's abstract values. Applies to JAX 0.8 to 0.12.

Private API used: `AbstractValue.str_short`, `dtypes.short_dtype_name`, the PRNG implementations.
Nothing here initialises a backend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

import jax
import numpy as np
from jax._src import core, dtypes
from jax._src import random as random_internals

from jaxsight_source.compat.jaxpr_types import Aval, DType


def text(aval: object) -> str:
    """Return an abstract value as jaxprs print it: `f32[8,16]`, `key<fry>[]`, `Ref{f32[3]}`."""
    short = getattr(aval, "str_short", None)
    return str(short(short_dtypes=True)) if short is not None else str(aval)


def weak(aval: object) -> bool:
    return bool(getattr(aval, "weak_type", False))


def of(value: object) -> Aval:
    """Return the abstract value of an array, a tracer or a `ShapeDtypeStruct`."""
    if isinstance(value, jax.ShapeDtypeStruct) and value.sharding is None:
        weak_type = bool(getattr(value, "weak_type", False))
        return core.ShapedArray(value.shape, value.dtype, weak_type=weak_type)
    aval: Aval = jax.typeof(value)
    return aval


def is_aval(value: object) -> TypeGuard[Aval]:
    return isinstance(value, core.AbstractValue)


def size(aval: object) -> int:
    """Return the size in bytes; 0 for a dtype without an item size."""
    shape, dtype = getattr(aval, "shape", ()), getattr(aval, "dtype", None)
    return math.prod(shape) * getattr(dtype, "itemsize", 0)


def struct(shape: tuple[int, ...], dtype: DType, weak_type: bool = False) -> jax.ShapeDtypeStruct:
    """Return a `ShapeDtypeStruct`: an array's type without its values."""
    make: Callable[..., jax.ShapeDtypeStruct] = jax.ShapeDtypeStruct
    return make(shape, dtype, weak_type=weak_type)


def array_text(dtype: DType, shape: tuple[int, ...]) -> str:
    """Return an array's type as a jaxpr would print it.

    Dtypes that JAX does not know keep their own names.
    """
    strange = np.dtype(dtype).kind in "OSUMm"
    name = str(dtype) if strange else dtypes.short_dtype_name(np.dtype(dtype))
    return f"{name}[{','.join(map(str, shape))}]"


def leaf(aval: Aval) -> object:
    """Return the `ShapeDtypeStruct` of an array's type; other abstract values are returned as such.

    Those of references and tokens have no struct.
    """
    if not isinstance(aval, core.ShapedArray):
        return aval
    return struct(aval.shape, aval.dtype, weak(aval))


def key_struct(impl: str, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """Return the type of an array of typed PRNG keys.

    `impl` is the implementation's name (`threefry2x32`) or tag (`fry`); raise `ValueError` for
    another.
    """
    name = {"fry": "threefry2x32", "urbg": "unsafe_rbg"}.get(impl, impl)
    implementation = random_internals.resolve_prng_impl(name)
    key = jax.eval_shape(lambda: jax.random.key(0, impl=implementation.name))
    return struct(shape, key.dtype)


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


class Unquoted(str):
    """A text that containers show without quotes."""

    def __repr__(self) -> str:
        return str(self)
