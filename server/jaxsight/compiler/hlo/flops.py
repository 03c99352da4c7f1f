"""Floating point operations of one launch, counted from shapes: an estimate, as every count of them is.

An elementwise operation counts one for each element, a contraction two for each product, an FFT of length n counts 5 n log2 n (the
customary figure of Cooley and Tukey's algorithm), a sort n log2 n comparisons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from jaxsight.compiler.hlo.shapes import arrays, dims, elements, sizes
from jaxsight.compiler.hlo.text import Instruction

_NOTHING = frozenset(
    {
        "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "broadcast", "reshape", "iota",
        "copy", "transpose", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad",
        "reverse", "gather", "bitcast-convert", "fusion", "call", "while", "conditional", "convert",
        "after-all", "opt-barrier", "partition-id", "replica-id", "custom-call", "domain", "copy-start",
        "copy-done", "rng-bit-generator",
    }
)  # fmt: skip

_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([^\]}]*)[\]}]')
_LENGTHS = re.compile(r"fft_length=\{([^}]*)\}")
_LABELS = re.compile(r"dim_labels=\w+_(\w+)->")

Lookup = Callable[[str], Instruction | None]
"""An operand by its name."""


def flops(inside: Iterable[tuple[Instruction, Lookup]]) -> int:
    """Operations of all instructions of a launch."""
    return sum(_one(instruction, lookup) for instruction, lookup in inside)


def _one(instruction: Instruction, lookup: Lookup) -> int:
    opcode = instruction.opcode
    if opcode == "custom-call" and "dot_dimension_numbers" in instruction.attributes:
        return _dot(instruction, lookup)
    if opcode in _NOTHING:
        return 0
    match opcode:
        case "dot" | "ragged-dot" | "scaled-dot":
            return _dot(instruction, lookup)
        case "convolution":
            return _convolution(instruction, lookup)
        case "fft":
            found = _LENGTHS.search(instruction.attributes)
            length = math.prod(dims(found[1])) if found else 1
            operand = _operand(instruction, lookup, 0)
            count = max(elements(instruction.shape), elements(operand) if operand else 0)
            return int(5 * count * math.log2(max(length, 2)))
        case "sort":
            count = elements(instruction.shape)
            return int(count * math.log2(max(count, 2)))
        case "reduce" | "reduce-window" | "scatter" | "select-and-scatter":
            operand = _operand(instruction, lookup, 0)
            return elements(operand) if operand else elements(instruction.shape)
        case _:
            return elements(instruction.shape)


def _operand(instruction: Instruction, lookup: Lookup, index: int) -> str:
    if index >= len(instruction.operands):
        return ""
    found = lookup(instruction.operands[index])
    return found.shape if found is not None else ""


def _dot(instruction: Instruction, lookup: Lookup) -> int:
    found = _CONTRACTED.search(instruction.attributes)
    left = arrays(_operand(instruction, lookup, 0))
    length = 1
    if found and left:
        lengths = sizes(left[0])
        for axis in dims(found[1]):
            length *= lengths[axis] if axis < len(lengths) else 1
    return 2 * elements(instruction.shape) * length


def _convolution(instruction: Instruction, lookup: Lookup) -> int:
    labels = _LABELS.search(instruction.attributes)
    right = arrays(_operand(instruction, lookup, 1))
    if not labels or not right:
        return elements(instruction.shape)
    lengths = sizes(right[0])
    features = labels[1].find("o")
    outputs = lengths[features] if 0 <= features < len(lengths) else 1
    return 2 * elements(instruction.shape) * math.prod(lengths) // max(outputs, 1)
