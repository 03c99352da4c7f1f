"""Types, attributes and constants of MLIR as those of NumPy and Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.program import UnreadableProgram

_ELEMENTS = {
    "i1": "bool", "i2": "int2", "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "ui2": "uint2", "ui4": "uint4", "ui8": "uint8", "ui16": "uint16",
    "ui32": "uint32", "ui64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64",
    "bf16": "bfloat16", "complex<f32>": "complex64", "complex<f64>": "complex128",
    "f8E3M4": "float8_e3m4", "f8E4M3": "float8_e4m3", "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FN": "float8_e4m3fn", "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu", "f4E2M1FN": "float4_e2m1fn",
    "index": "int64",
}  # fmt: skip

_BUFFERS = {*["i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64"]}
"""Elements that MLIR's Python buffers have; jaxlib 0.8 aborts the process for others."""

_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|true|false|[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?)")


def dtype_of(element: object) -> np.dtype:
    """Return the dtype of an element type such as `bf16`."""
    name = _ELEMENTS.get(str(element))
    found = name and (jnp.bool_ if name == "bool" else getattr(jnp, name, None))
    if not found:
        raise UnreadableProgram(f"JAX has no dtype for elements of type {element}")
    return jnp.dtype(found)


def tensor(kind_of: object) -> ir.RankedTensorType:
    """Return a ranked tensor type.

    Raises:
        UnreadableProgram: if it is another type, such as a token.
    """
    try:
        return ir.RankedTensorType(kind_of)
    except (ValueError, TypeError):
        raise UnreadableProgram(f"expected a ranked tensor, got {kind_of}") from None


def struct(kind: object) -> jax.ShapeDtypeStruct:
    """Return a ranked tensor type as JAX has it."""
    found = tensor(kind)
    return jax.ShapeDtypeStruct(tuple(found.shape), dtype_of(found.element_type))


def constant(operation: ir.Operation) -> np.ndarray:
    """Return the array of a `stablehlo.constant`, with its bits."""
    found = tensor(operation.results[0].type)
    dtype, shape = dtype_of(found.element_type), tuple(found.shape)
    if str(found.element_type) in _BUFFERS:
        return np.array(operation.attributes["value"], dtype).reshape(shape)
    text = constant_text(operation)
    if not text.startswith("dense<"):
        raise UnreadableProgram(f"expected a dense constant, got {text[:40]}")
    text = text[len("dense<") : -1]
    if text.startswith('"0x'):
        elements = np.frombuffer(bytes.fromhex(text[3:-1]), dtype)
    else:
        elements = _elements(_NUMBER.findall(text), dtype)
    if elements.size == 1:
        return np.full(shape, elements[0], dtype)
    return elements.reshape(shape)


def constant_text(operation: ir.Operation) -> str:
    """Return a constant as MLIR prints it, without its type.

    Python has no attribute for complex constants (jaxlib 0.12), so it is taken from the operation.
    """
    text = str(operation)
    start = text.index("stablehlo.constant") + len("stablehlo.constant")
    text = text[start:].strip()
    if text.startswith("{"):  # further attributes
        text = text[text.index("}") + 1 :].strip()
    return text[: text.rindex(" : ")]


def _elements(numbers: Sequence[str], dtype: np.dtype) -> np.ndarray:
    """Return an array of numbers in decimals, or as hexadecimal bits."""
    part = np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype
    bits = np.dtype(f"uint{part.itemsize * 8}")
    found = np.empty(len(numbers), part)
    for position, number in enumerate(numbers):
        if number.startswith("0x"):
            found[position] = np.array(int(number, 16), bits).view(part)
        elif number in ("true", "false"):
            found[position] = number == "true"
        else:
            found[position] = np.array(
                float(number) if part.kind not in "iu" else int(number)
            ).astype(part)
    return found.view(dtype) if dtype.kind == "c" else found


def integers(attribute: object) -> tuple[int, ...]:
    """Return the integers of an array attribute, dense or of attributes."""
    text = str(attribute)
    if text.startswith("array<"):
        text = text[len("array<") : -1].partition(":")[2]
        words = [word.strip() for word in text.split(",")]
        return tuple(_integer(word) for word in words if word)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(integer(part) for part in attribute)
    return tuple(int(number) for number in np.array(attribute).ravel())


def _integer(word: str) -> int:
    return int(word == "true") if word in ("true", "false") else int(word)


def symbol(attribute: ir.Attribute) -> str:
    return str(ir.FlatSymbolRefAttr(attribute).value)


def integer(attribute: object) -> int:
    return int(ir.IntegerAttr(attribute).value)


def word(attribute: object) -> str:
    """Return the last word of an enumerator: `FFT` of `#stablehlo<fft_type FFT>`."""
    return str(attribute).rstrip(">").split()[-1]
