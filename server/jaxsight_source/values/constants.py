"""Expressions for the constant arrays of a program.

Regular arrays are generated, small ones are listed number by number, others are one compressed
literal; beyond 1 MiB the caller chooses where arrays are kept. Every expression is evaluated and
compared bit for bit.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.errors import Unwritable
from jaxsight_source.jaxprs.same.values import value_token
from jaxsight_source.text.exprs import call, list_
from jaxsight_source.text.layout import flat
from jaxsight_source.values import spelling

FEW = 32
"""The maximum number of numbers that are written one by one.

A choice: so many fill three or four lines; a longer list says no more than its compressed form.
"""

LARGEST_INLINE = 1 << 20
"""The maximum total size, in bytes before compression, of the arrays in the text of a module.

A choice: it becomes up to 1.25 MB of text (base 85), which editors still open and highlight.
"""

_CHUNK = 76
"""Characters per line of compressed data, as of encoded mail (RFC 2045)."""


def regular(value: object) -> Iterator[ast.expr]:
    """Yield expressions that may make this array; the caller compares."""
    array = np.asarray(value)
    shape, dtype = spelling.value(array.shape), spelling.dtype(array.dtype)
    if array.size == 0:
        yield call("jnp.zeros", shape, dtype)
        return
    first = array.reshape(-1)[0]
    if (array == first).all() or array.size == 1:
        yield from _filled(first, shape, dtype, weak=getattr(value, "weak_type", False))
    if array.ndim == 1 and array.size > 2 and array.dtype.kind in "iuf":
        with contextlib.suppress(Unwritable, ValueError, OverflowError):
            yield from _ranges(array, dtype)
    if array.ndim == 2:
        rows, columns = array.shape
        sides = (rows,) if rows == columns else (rows, columns)
        yield call("jnp.eye", *map(ast.Constant, sides), dtype=dtype)
        yield call("jnp.tril", call("jnp.ones", shape, dtype))
    if array.ndim > 1:
        for axis in range(array.ndim):
            yield call("lax.broadcasted_iota", dtype, shape, ast.Constant(axis))


def _filled(number: object, shape: ast.expr, dtype: ast.expr, *, weak: bool) -> Iterator[ast.expr]:
    """Yield arrays of one number."""
    try:
        plain = spelling.plain(number)
    except Unwritable:
        plain = spelling.typed(number)
    match flat(plain):
        case "0" | "0.0" | "False" if not weak:
            yield call("jnp.zeros", shape, dtype)
        case "1" | "1.0" | "True" if not weak:
            yield call("jnp.ones", shape, dtype)
        case _:
            pass
    if weak:
        yield call("jnp.full", shape, plain)
    yield call("jnp.full", shape, plain, dtype)
    yield call("jnp.full", shape, spelling.typed(number), dtype)


def _ranges(array: np.ndarray, dtype: ast.expr) -> Iterator[ast.expr]:
    """Yield the `jnp.arange` with the first two numbers of an array."""
    start, second = spelling.plain(array[0]), array[1]
    step = second - array[0]
    stop = array[0] + step * array.size
    if not step:
        return  # `arange` has no such step
    if flat(start) in ("0", "0.0") and step == 1:
        yield call("jnp.arange", ast.Constant(array.size), dtype=dtype)
    elif step == 1:
        yield call("jnp.arange", start, spelling.plain(stop), dtype=dtype)
    else:
        yield call("jnp.arange", start, spelling.plain(stop), spelling.plain(step), dtype=dtype)


def listed(value: object) -> ast.expr:
    """Return an array expression with all numbers listed."""
    array = np.asarray(value)
    dtype = spelling.dtype(array.dtype)

    def nested(part: Any) -> ast.expr:
        if part.ndim:
            return list_(nested(inner) for inner in part)
        return spelling.plain(part)

    return call("jnp.array", nested(array), dtype=dtype)


def spelled(value: Any) -> ast.expr | None:
    """Return a short expression for a constant, or None if only its bytes can represent it."""
    if avals.is_key(getattr(value, "aval", value)):
        data = jax.random.key_data(value)
        inside = spelled(data)
        impl = ast.Constant(avals.key_impl(value.dtype))
        return None if inside is None else call("jax.random.wrap_key_data", inside, impl=impl)
    array = np.asarray(value)
    weak = getattr(value, "weak_type", False)
    candidates: list[ast.expr] = []
    if array.size <= FEW and not weak:
        with contextlib.suppress(Unwritable):
            candidates.append(listed(value))
    if array.size > 8 or weak or not candidates:  # fewer are plainer one by one
        candidates[:0] = list(regular(value))
    for candidate in candidates:
        if _makes(candidate, value):
            return candidate
    return None


def _makes(candidate: ast.expr, value: Any) -> bool:
    names = {"jnp": jnp, "jax": jax, "lax": jax.lax, "np": np}
    try:
        with jax.ensure_compile_time_eval():
            array = eval(flat(candidate), names)
    except (TypeError, ValueError, ArithmeticError):
        return False
    return (
        value_token(array) == value_token(value)
        and array.shape == value.shape
        and bool(getattr(array, "weak_type", False)) == bool(getattr(value, "weak_type", False))
    )


def about(value: Any) -> str:
    """Return the description of a captured array for the docstring of a function that takes it."""
    return f"is a constant array of the original, {value.dtype}{list(value.shape)}"


def plain(value: object) -> np.ndarray:
    """Return an array as an NPZ file can hold it: with a dtype of NumPy's own, or as bytes."""
    array = np.asarray(value)
    return array if is_numpy(array.dtype) else np.ascontiguousarray(array).view(_BYTES)


def is_numpy(dtype: object) -> bool:
    """Return whether a dtype is NumPy's own. `isbuiltin` is false for one that was unpickled."""
    return type(dtype).__module__ == "numpy.dtypes"


_BYTES = np.dtype(np.uint8)


def read_back(stored: ast.expr, value: object) -> ast.expr:
    """Return an expression for an array from its entry in an NPZ file, with its own dtype."""
    array = np.asarray(value)
    if is_numpy(array.dtype):
        return call("jnp.asarray", stored)
    bytes_read = call(ast.Attribute(stored, "view"), spelling.dtype(array.dtype))
    return call(
        "jnp.asarray", call(ast.Attribute(bytes_read, "reshape"), spelling.value(array.shape))
    )


UNPACK = [
    "def _unpack(data, dtype, shape):",
    "    raw = zlib.decompress(base64.b85decode(data))",
    "    return jnp.asarray(np.frombuffer(raw, np.dtype(dtype)).reshape(shape))",
]
"""The helper function that a module with compressed constants defines.

`np.dtype` accepts `jnp`'s names of the small floats and integers.
"""


def packed(name: str, value: object) -> list[str]:
    """Return the lines that define a constant by its compressed data."""
    array = np.asarray(value)
    data = base64.b85encode(zlib.compress(array.tobytes(), 9)).decode("ascii")
    pieces = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    return [
        f"{name} = _unpack(",
        *(f'    "{piece}"' for piece in pieces[:-1]),
        f'    "{pieces[-1]}",',
        f"    {flat(spelling.dtype(array.dtype))},",
        f"    {array.shape!r},",
        ")",
    ]
