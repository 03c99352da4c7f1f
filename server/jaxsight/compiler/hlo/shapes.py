"""Types of HLO as values: dtype, dimensions, layout, bytes."""

from __future__ import annotations

import re
from functools import lru_cache

from jaxsight.compiler.graph import Value

_ARRAY = re.compile(r"(?P<dtype>[a-z][a-z0-9]*)\[(?P<dims>[^\]]*)\](?:\{(?P<layout>[^}]*)\})?")
_NUMBER = re.compile(r"\d+")

_BITS = {"pred": 8, "token": 0, "opaque": 0}


def bits(dtype: str) -> int:
    """Bits of one element as it lies in memory: `f32` 32, `s4` 4, `f8e4m3fn` 8, `c64` 64, `pred` 8."""
    if dtype in _BITS:
        return _BITS[dtype]
    found = _NUMBER.search(dtype)
    return int(found[0]) if found else 0


def dims(text: str) -> tuple[int, ...]:
    """The sizes in `128,<=64`; a bounded dynamic size counts as its bound."""
    return tuple(int(number) for number in _NUMBER.findall(text))


@lru_cache(maxsize=16384)
def arrays(shape: str) -> tuple[Value, ...]:
    """The arrays of a type, those of a tuple in order; tokens are none."""
    found = []
    for match in _ARRAY.finditer(shape):
        dtype = match["dtype"]
        if dtype in ("token", "opaque"):
            continue
        sizes = dims(match["dims"])
        layout = (match["layout"] or "").split(":", 1)[0]
        width = bits(dtype)
        elements = 1
        for size in sizes:
            elements *= size
        text = f"{dtype}[{','.join(map(str, sizes))}]"
        found.append(Value(text, layout, (elements * width + 7) // 8))
    return tuple(found)


@lru_cache(maxsize=16384)
def elements(shape: str) -> int:
    """Elements of the first array of a type."""
    match = _ARRAY.search(shape)
    count = 1
    for size in dims(match["dims"]) if match else ():
        count *= size
    return count


def sizes(value: Value) -> tuple[int, ...]:
    """The dimensions of a value."""
    return dims(value.text[value.text.index("[") :])


def is_tiled(shape: str) -> bool:
    """Whether a layout has tiles, as a TPU's have."""
    return ":T(" in shape
