"""Round numbers to the dtypes of arrays."""

from __future__ import annotations

import math
import struct

_DIGITS = {"float16": "e", "float32": "f"}


def rounded(number: float, dtype: str) -> float:
    """Return a number as an array of this type holds it."""
    if dtype == "bool":
        return float(number != 0)
    if dtype.startswith(("int", "uint")):
        return float(math.trunc(number)) if math.isfinite(number) else 0.0
    if dtype == "bfloat16":
        bits = struct.unpack("I", struct.pack("f", rounded(number, "float32")))[0]
        return float(struct.unpack("f", struct.pack("I", bits + 0x8000 & 0xFFFF0000))[0])
    digits = _DIGITS.get(dtype)
    if digits is None:
        return number
    try:
        return float(struct.unpack(digits, struct.pack(digits, number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
