"""Parse types of HLO: dtype, dimensions, layout, bytes."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from jaxsight.wire.kernel_graph import Value

_ARRAY = re.compile(r"(?P<dtype>[a-z][a-z0-9]*)\[(?P<dims>[^\]]*)\](?:\{(?P<layout>[^}]*)\})?")
HOST_SPACE = 5
"""The memory space of the host (`kHostMemorySpace` in openxla/xla, `xla/layout.h`)."""
KEPT = 16384
"""Types and names that are remembered, those of a large program: of fewer, some are read again."""
HOST_MARK = f"S({HOST_SPACE})"
"""The same in a layout."""
_NUMBER = re.compile(r"\d+")

_BITS = {"pred": 8, "token": 0, "opaque": 0}


def bits(dtype: str) -> int:
    """Return the bits of an element in memory, e.g. 4 for `s4`, 8 for `pred` and 64 for `c64`."""
    if dtype in _BITS:
        return _BITS[dtype]
    digits = _NUMBER.search(dtype)
    return int(digits[0]) if digits else 0


def dims(text: str) -> tuple[int, ...]:
    """Return the sizes in `128,<=64`; a bounded dynamic size counts as its bound."""
    return tuple(int(number) for number in _NUMBER.findall(text))


@lru_cache(maxsize=KEPT)
def arrays(shape: str) -> tuple[Value, ...]:
    """Return the arrays of a type, or of a tuple type in order, without tokens."""
    values = []
    for match in _ARRAY.finditer(shape):
        dtype = match["dtype"]
        if dtype in ("token", "opaque"):
            continue
        sizes = dims(match["dims"])
        layout, _, placement = (match["layout"] or "").partition(":")
        width = bits(dtype)
        text = f"{dtype}[{','.join(map(str, sizes))}]"
        bytes = (math.prod(sizes) * width + 7) // 8
        values.append(Value(text, layout, bytes, on_host=HOST_MARK in placement))
    return tuple(values)


def total_bytes(shape: str) -> int:
    """Return the bytes of all arrays of a type."""
    return sum(value.bytes for value in arrays(shape))


@lru_cache(maxsize=KEPT)
def elements(shape: str) -> int:
    """Return the number of elements of the first array of a type."""
    match = _ARRAY.search(shape)
    return math.prod(dims(match["dims"])) if match else 1


def sizes(value: Value) -> tuple[int, ...]:
    """Return the dimensions of a value."""
    return dims(value.text[value.text.index("[") :])


@lru_cache(maxsize=KEPT)
def dtype(shape: str) -> str:
    """Return the dtype of the first array of a type, e.g. `f32`, or `""` if there is none."""
    match = _ARRAY.search(shape)
    return match["dtype"] if match else ""


def layout(shape: str) -> tuple[int, ...]:
    """Return the dimensions of the first array of a type, the contiguous one first."""
    match = _ARRAY.search(shape)
    return dims((match["layout"] or "").split(":", 1)[0]) if match else ()


@lru_cache(maxsize=4096)  # tuples are fewer than arrays
def array_types(shape: str) -> tuple[str, ...]:
    """Return the array types in a type, as printed, with their layouts."""
    return tuple(match[0] for match in _ARRAY.finditer(shape))


@lru_cache(maxsize=4096)
def parts(shape: str) -> tuple[str, ...]:
    """Return the element types of a tuple type in order, or `()` for other types."""
    if not shape.startswith("("):
        return ()
    elements = (part.strip() for part in split_at_commas(shape[1:-1]))
    return tuple(element for element in elements if element)


def split_at_commas(text: str) -> list[str]:
    """Return the parts of a text between the commas that are not in brackets."""
    parts = []
    depth = begin = 0
    for at, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return parts


@lru_cache(maxsize=KEPT)
def without_layout(shape: str) -> str:
    """Return an array type without its layout; a tuple type up to its first layout."""
    return shape.split("{", 1)[0]


def is_tiled(shape: str) -> bool:
    """Return whether a layout has tiles, as on TPUs."""
    return ":T(" in shape
