"""Operations of JAX in NumPy: what an operation returns, without XLA.

Each takes and returns arrays of NumPy, and has the parameters of the primitive with its name.
It raises `NotInNumpy` where NumPy may return something else than a rounding error away.
Operations that few programs have, such as sorts, are missing: XLA computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxsight_dataset.compat.eager import NotInNumpy, Operation
from jaxsight_source.compat.jaxpr_types import DType

_Array: TypeAlias = "np.ndarray[Any, Any]"

_SPLIT = "".join(map(chr, range(ord("a"), ord("z") + 1)))
"""Letters of axes for `einsum`."""


def _is_real(array: _Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _require(condition: object) -> None:
    if not condition:
        raise NotInNumpy


def _real(function: Callable[..., _Array], *arrays: _Array, **_: object) -> _Array:
    """Apply a function of real numbers: NumPy and XLA cut complex planes in other places."""
    _require(all(map(_is_real, arrays)))
    return function(*arrays)


def _any(
    function: Callable[..., _Array], *arrays: _Array, out_dtype: object = None, **_: object
) -> _Array:
    _require(out_dtype is None)
    return function(*arrays)


def _ordered(function: Callable[..., _Array], *arrays: _Array, **_: object) -> _Array:
    _require(not any(np.iscomplexobj(array) for array in arrays))
    return function(*arrays)


def integer_pow(x: _Array, *, y: int) -> _Array:
    _require(_is_real(x) or y >= 0)
    return np.power(x, np.asarray(y, x.dtype)) if _is_real(x) else np.power(x, y).astype(x.dtype)


def logistic(x: _Array, **_: object) -> _Array:
    return _real(lambda x: np.reciprocal(1 + np.exp(-x)), x)


def _shift(function: Callable[..., _Array], x: _Array, by: _Array) -> _Array:
    _require(np.issubdtype(x.dtype, np.unsignedinteger) and (by < 8 * x.dtype.itemsize).all())
    return function(x, by)


def select_n(which: _Array, *cases: _Array) -> _Array:
    _require(which.dtype == bool and len(cases) == 2)
    return np.where(which, cases[1], cases[0])


def clamp(least: _Array, x: _Array, most: _Array) -> _Array:
    return np.minimum(np.maximum(x, least), most)


def convert_element_type(x: _Array, *, new_dtype: DType, weak_type: bool, **_: object) -> _Array:
    dtype = np.dtype(new_dtype)
    _require(not weak_type)
    _require(not np.iscomplexobj(x) or jnp.issubdtype(dtype, jnp.complexfloating))
    if jnp.issubdtype(dtype, jnp.integer) and _is_real(x):
        limits = np.iinfo(dtype.name)
        _require(((x >= limits.min) & (x < limits.max)).all())  # XLA saturates
    return x.astype(dtype)


def broadcast_in_dim(
    x: _Array, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: object
) -> _Array:
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def reshape(
    x: _Array, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None, **_: object
) -> _Array:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def iota(*, dtype: DType, shape: Sequence[int], dimension: int, **_: object) -> _Array:
    sizes = [size if axis == dimension else 1 for axis, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(sizes), shape)


def strided_slice(
    x: _Array,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> _Array:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _wide(x: _Array) -> _Array:
    """Return an array in `float32` if it has fewer bits: XLA adds up in `float32`, too."""
    return x.astype(np.float32) if _is_real(x) and x.dtype.itemsize < 4 else x


def _reduced(
    function: Callable[..., _Array], x: _Array, *, axes: Sequence[int], **_: object
) -> _Array:
    wide = _wide(x)
    return function(wide, axis=tuple(axes), dtype=wide.dtype).astype(x.dtype)


def _extreme(
    function: Callable[..., _Array], x: _Array, *, axes: Sequence[int], **_: object
) -> _Array:
    _require(not np.iscomplexobj(x) and x.size)
    return function(x, axis=tuple(axes)).astype(x.dtype)


def dot_general(
    x: _Array,
    y: _Array,
    *,
    dimension_numbers: Sequence[Sequence[Sequence[int]]],
    preferred_element_type: DType | None,
    **_: object,
) -> _Array:
    (x_sum, y_sum), (x_batch, y_batch) = dimension_numbers
    letters = iter(_SPLIT)
    ours, theirs = [""] * x.ndim, [""] * y.ndim
    for mine, other in ((x_batch, y_batch), (x_sum, y_sum)):
        for at, to in zip(mine, other, strict=True):
            ours[at] = theirs[to] = next(letters)
    batch = "".join(ours[at] for at in x_batch)
    rest = ["", ""]
    for at, names in enumerate((ours, theirs)):
        for axis, name in enumerate(names):
            names[axis] = name or next(letters)
            rest[at] += "" if name else names[axis]
    path = f"{''.join(ours)},{''.join(theirs)}->{batch}{''.join(rest)}"
    dtype = np.dtype(preferred_element_type or np.result_type(x, y))
    x, y = _wide(x), _wide(y)
    if jnp.issubdtype(dtype, jnp.integer):
        x, y = x.astype(dtype), y.astype(dtype)
    return np.asarray(np.einsum(path, x, y, optimize=True)).astype(dtype)


def rsqrt(x: _Array) -> _Array:
    return np.reciprocal(np.sqrt(x))


_REAL = {
    **{name: getattr(np, name) for name in ("cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1")},
    **{name: getattr(np, name) for name in ("floor", "log", "log1p", "nextafter", "sin", "sinh")},
    **{name: getattr(np, name) for name in ("sqrt", "tan", "tanh", "square")},
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "div": np.divide,
    "is_finite": np.isfinite,
    "pow": np.power,
    "rem": np.fmod,
    "rsqrt": rsqrt,
    "sign": np.sign,
}
_ANY: dict[str, Callable[..., _Array]] = {
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "copy": np.asarray,
    "eq": np.equal,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
    "real": np.real,
    "imag": np.imag,
}
_ORDERED = {
    "abs": np.abs,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
}
_ARRANGED: dict[str, Operation] = {
    "concatenate": lambda *arrays, dimension: np.concatenate(arrays, dimension),
    "rev": lambda x, *, dimensions: np.flip(x, dimensions),
    "squeeze": lambda x, *, dimensions: np.squeeze(x, tuple(dimensions)),
    "transpose": lambda x, *, permutation: np.transpose(x, permutation),
}

OPERATIONS: dict[str, Operation] = {
    **{name: partial(_real, function) for name, function in _REAL.items()},
    **{name: partial(_any, function) for name, function in _ANY.items()},
    **{name: partial(_ordered, function) for name, function in _ORDERED.items()},
    **_ARRANGED,
    "broadcast_in_dim": broadcast_in_dim,
    "clamp": clamp,
    "convert_element_type": convert_element_type,
    "dot_general": dot_general,
    "integer_pow": integer_pow,
    "iota": iota,
    "logistic": logistic,
    "reduce_and": partial(_extreme, np.logical_and.reduce),
    "reduce_max": partial(_extreme, np.max),
    "reduce_min": partial(_extreme, np.min),
    "reduce_or": partial(_extreme, np.logical_or.reduce),
    "reduce_prod": partial(_reduced, np.prod),
    "reduce_sum": partial(_reduced, np.sum),
    "reshape": reshape,
    "select_n": select_n,
    "shift_left": partial(_shift, np.left_shift),
    "shift_right_logical": partial(_shift, np.right_shift),
    "slice": strided_slice,
}
"""Operations by the names of their primitives, without `_p`."""
