"""The dtypes and key implementations that example inputs may name, as in jaxprs and in NumPy.

They are a table, so that the server needs neither JAX nor NumPy to read one.
"""

from __future__ import annotations

from jaxsight.examples.problems import nearest
from jaxsight.text.names import words

DTYPES = words(
    """
    float32 bfloat16 float16 float64 int32 int64 int16 int8 int4 int2 int1 uint32 uint64 uint16
    uint8 uint4 uint2 uint1 bool complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e3m4 float8_e8m0fnu float6_e2m3fn
    float6_e3m2fn float4_e2m1fn
    """
)
"""Every dtype that a JAX array can have, by NumPy's (or ml_dtypes') name; the usual ones first."""


def short(dtype: str) -> str:
    """Return the name as jaxprs print it: `f32` for `float32`."""
    for long, brief in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        dtype = dtype.replace(long, brief)
    return dtype


_NUMPY_ALIASES = {
    "bool_": "bool",
    "byte": "int8",
    "ubyte": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "intc": "int32",
    "uintc": "uint32",
    "int_": "int64",
    "uint": "uint64",
    "intp": "int64",
    "uintp": "uint64",
    "long": "int64",
    "ulong": "uint64",
    "longlong": "int64",
    "ulonglong": "uint64",
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "csingle": "complex64",
    "cdouble": "complex128",
}

BY_NAME = {name: name for name in DTYPES} | {short(d): d for d in DTYPES} | _NUMPY_ALIASES

# Python's own types have no width; their users want JAX's default.
_MEANT = {"float": "f32", "int": "i32", "complex": "c64", "b1": "bool", "pred": "bool"}

KEY_IMPLEMENTATIONS = {
    "fry": "fry",
    "threefry2x32": "fry",
    "rbg": "rbg",
    "urbg": "unsafe_rbg",
    "unsafe_rbg": "unsafe_rbg",
}
"""JAX's tags and names of key implementations, mapped to the name that the tracer takes."""

KEY_TAGS = {"fry": "fry", "rbg": "rbg", "unsafe_rbg": "urbg"}
"""Key implementations as jaxprs print them."""


def suggestion(name: str) -> str | None:
    """Return the short name of the dtype that `name` was probably meant to be."""
    meant = _MEANT.get(name)
    if meant is not None:
        return meant
    name_meant = nearest(name, BY_NAME)
    return None if name_meant is None else short(BY_NAME[name_meant])
