"""Numbers, dtypes and strings as expressions.

A scalar has several spellings (`2.0`, `np.float32(2.0)`): rules offer them in turn and the prover
chooses.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import dtypes
from jaxsight_source.compat.jaxpr_types import DType
from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import call, parsed, public, tuple_, unary
from jaxsight_source.text.layout import flat


def dtype(value: Any) -> ast.expr:
    """Return `jnp.float32`; for a dtype of PRNG keys, that of a key."""
    if dtypes.is_subtype(value, jax.dtypes.prng_key):
        impl = dtypes.key_impl(value)
        return parsed(f'jax.random.key(0, impl="{impl}").dtype')
    converted = np.dtype(value)
    if converted == jax.dtypes.float0:
        return public("jax.dtypes.float0")
    name = "bool_" if converted.name == "bool" else converted.name
    if not hasattr(jnp, name):
        raise Unwritable(value)
    return public(f"jnp.{name}")


def kind(dtype: DType) -> str:
    """Return `f`, `i`, `u`, `c` or `b` for a dtype, also for small ones; empty for others."""
    for letter, family in (
        ("b", np.bool_), ("i", np.signedinteger), ("u", np.unsignedinteger),
        ("f", np.floating), ("c", np.complexfloating),
    ):  # fmt: skip
        if dtypes.is_subtype(dtype, family):
            return letter
    return ""


def number(value: object) -> ast.expr:
    """Return a Python number exactly; `inf` and the default `nan` as `jnp` names them."""
    match value:
        case bool() | int():
            return ast.Constant(value)
        case float() if math.isnan(value):
            return public("jnp.nan")
        case float() if math.isinf(value):
            return public("jnp.inf") if value > 0 else unary("-", public("jnp.inf"))
        case float():
            return ast.Constant(value)
        case complex():
            return call("complex", number(value.real), number(value.imag))
        case _:
            raise Unwritable(value)


def _short_float(value: Any) -> float:
    """Return the Python float with the fewest digits that rounds to `value` in its dtype."""
    exact = float(value)
    for digits in range(1, 18):
        short = float(f"{exact:.{digits}g}")
        if _bits(np.asarray(short).astype(value.dtype)) == _bits(value):
            return short
    return exact


def _bits(value: object) -> bytes:
    return np.asarray(value).tobytes()


@np.errstate(all="ignore")
def plain(value: object) -> ast.expr:
    """Return a scalar array's value as a Python number.

    Raise `Unwritable` if its bits would change.
    """
    array: Any = np.asarray(value)
    kind = "c" if array.dtype.kind == "c" else jnp.dtype(array.dtype).kind
    as_python: object
    if array.dtype == bool:
        as_python = bool(array)
    elif dtypes.is_subtype(array.dtype, np.integer):
        as_python = int(array)
    elif kind == "c":
        parts = np.asarray(array.real), np.asarray(array.imag)
        as_python = complex(*(math.nan if np.isnan(part) else _short_float(part) for part in parts))
    elif dtypes.is_subtype(array.dtype, np.floating):
        as_python = math.nan if np.isnan(array) else _short_float(array)
    else:
        raise Unwritable(array)
    if _bits(np.asarray(as_python).astype(array.dtype)) != _bits(array):
        raise Unwritable(array, "no Python number has its bits")
    return number(as_python)


def typed(value: object) -> ast.expr:
    """Return a scalar with its dtype: `np.float32(2.0)`, `jnp.bfloat16(2.0)`.

    NaNs other than the default are written by their bits.
    """
    array = np.asarray(value)
    if array.dtype == jax.dtypes.float0:
        return call("np.zeros", tuple_(()), dtype(array.dtype))
    native = array.dtype.isbuiltin == 1
    name = array.dtype.name
    try:
        inside = plain(array)
    except Unwritable:
        width = array.dtype.itemsize
        if width > 8:  # complex128: both halves
            return call("np.complex128", call("complex", typed(array.real), typed(array.imag)))
        bits = int(array.view(f"uint{8 * width}"))
        view = public(f"np.{name}") if native else dtype(array.dtype)
        return call(parsed(f"np.uint{8 * width}(0x{bits:X}).view"), view)
    if native:
        return call(f"np.{'bool_' if name == 'bool' else name}", inside)
    return call(flat(dtype(array.dtype)), inside)


def scalar(value: object, weak: bool) -> ast.expr:
    """Return a scalar that keeps its dtype and weak type wherever it is passed."""
    array = np.asarray(value)
    return plain(array) if weak else typed(array)
