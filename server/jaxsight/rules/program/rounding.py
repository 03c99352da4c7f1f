"""Round numbers to the dtypes of arrays."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial

_HALF, _BITS = struct.Struct("e"), struct.Struct("I")
_SINGLE = struct.Struct("f")


def rounder(dtype: str) -> Callable[[float], float]:
    """Return the function that returns a number as an array of this type holds it."""
    if dtype == "bool":
        return lambda number: float(number != 0)
    if dtype.startswith(("int", "uint")):
        return lambda number: float(math.trunc(number)) if math.isfinite(number) else 0.0
    return {"float32": _single, "float16": _half, "bfloat16": _brain}.get(dtype, float)


def rounded(number: float, dtype: str) -> float:
    """Return a number as an array of this type holds it."""
    return rounder(dtype)(number)


def _packed(form: struct.Struct, number: float) -> float:
    try:
        return float(form.unpack(form.pack(number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


_single: Callable[[float], float] = partial(_packed, _SINGLE)
_half: Callable[[float], float] = partial(_packed, _HALF)


def _brain(number: float) -> float:
    single = _single(number)
    if not math.isfinite(single):
        return single
    bits = _BITS.unpack(_SINGLE.pack(single))[0] + 0x8000 & 0xFFFF0000
    return float(_SINGLE.unpack(_BITS.pack(bits))[0])
