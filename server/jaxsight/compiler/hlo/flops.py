"""Estimate the real operations of an instruction from its shapes.

An elementwise operation counts one per element, a contraction two per product, an FFT of length n
counts 5 n log2 n (the customary figure of Cooley and Tukey's algorithm), a sort the comparisons of
XLA's network.
A product of complex numbers counts four real ones.
Operations that take another number of instructions than an addition (`COSTLY`) are counted apart.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from functools import lru_cache

from jaxsight.compiler.hlo.sorts import sorted_lengths
from jaxsight.hlo.shapes import KEPT, arrays, bits, dims, dtype, elements, sizes
from jaxsight.hlo.text import Computation, Instruction, attribute
from jaxsight.wire.kernel_work import Operations

MATRIX = "matrix"
VECTOR = "vector"
FUSED = "multiply-add"
"""The opcode of multiplications that are one instruction with the addition of their result, and of
both in products without matrix units."""
COSTLY = frozenset(
    {
        "atan2", "cbrt", "cosine", "divide", "erf", "exponential", "exponential-minus-one", "log",
        "log-plus-one", "logistic", "power", "reduce-window", "remainder", "rsqrt", "shift-left",
        "shift-right-arithmetic", "shift-right-logical", "sine", "sort", "sqrt", "tan", "tanh",
    }
)  # fmt: skip
"""Operations whose opcode is kept; `targets/chips/instructions.py` has their instructions."""

_NOTHING = frozenset(
    {
        "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "broadcast", "reshape",
        "iota", "copy", "transpose", "slice", "dynamic-slice", "dynamic-update-slice",
        "concatenate", "pad", "reverse", "gather", "bitcast-convert", "fusion", "call", "while",
        "conditional", "convert", "after-all", "opt-barrier", "partition-id", "replica-id",
        "custom-call", "domain", "copy-start", "copy-done", "rng-bit-generator",
    }
)  # fmt: skip
_PRODUCTS = frozenset({"dot", "ragged-dot", "scaled-dot"})
_NOT_ELEMENTWISE = (
    _NOTHING
    | _PRODUCTS
    | {"convolution", "fft", "sort", "scatter", "reduce", "select-and-scatter", "reduce-window"}
)

_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([^\]}]*)[\]}]')
_LABELS = re.compile(r"(\w+)_(\w+)->(\w+)")
_PRECISION = re.compile(r'operand_precision(?:=\{|":\[)([^\]}]*)[\]}]')
_ALGORITHM = re.compile(r'algorithm(?:=|":"ALG_)(dot_\w+)', re.IGNORECASE)
_CHANNELS_READ, _CHANNELS_WRITTEN = 16, 128
"""Channels of a tile of cuDNN's convolutions on tensor cores: 64 result channels take as long as
128, and 3 read channels as 16 (measured on an H100)."""
_MOST_PADDING = 11
"""Of 3 channels read and 64 written; for fewer, cuDNN has other kernels."""
_LARGE_WINDOW = 1_000_000
"""Positions that are counted one by one, chosen: with more, a convolution with holes takes long;
with fewer, the padding of more convolutions counts as work."""
_LONG_WINDOW = 32
"""Elements of a window up to which each is a step, chosen: windows of pooling are shorter."""

Lookup = Callable[[str], Instruction | None]
"""Returns an operand by its name."""


UNCOUNTED = _NOTHING - {"custom-call"}
"""Operations without arithmetic, whatever their attributes."""


def operations(instruction: Instruction, lookup: Lookup, *, on_matrix_units: bool) -> Operations:
    """Return the operations of an instruction.

    Args:
        lookup: finds its operands.
        on_matrix_units: whether contractions run on tensor cores or a TPU's matrix unit.
    """
    opcode = instruction.opcode
    if opcode not in _NOT_ELEMENTWISE:
        return _elementwise(instruction.shape, opcode if opcode in COSTLY else "")
    if opcode in _PRODUCTS or is_matmul_call(instruction):
        return _product(instruction, lookup, _dot(instruction, lookup), on_matrix_units)
    if opcode == "convolution" or is_convolution_call(instruction):
        return _product(instruction, lookup, _convolution(instruction, lookup), True)
    count = _plain(instruction, lookup)
    of = dtype(instruction.shape)
    if opcode == "fft":
        of = "f64" if of in ("f64", "c128") else "f32"
    return Operations(VECTOR, of, count, "", opcode if opcode in COSTLY else "")


@lru_cache(maxsize=KEPT)
def _elementwise(shape: str, opcode: str) -> Operations:
    return Operations(VECTOR, dtype(shape), elements(shape), "", opcode)


def fused_multiplications(computation: Computation) -> frozenset[str]:
    """Return the multiplications that LLVM contracts with the only addition that reads them.

    XLA allows it on GPUs (`llvm::FPOpFusion::Fast` in
    xla/service/gpu/llvm_gpu_backend/gpu_backend_lib.cc).
    """
    found = set[str]()
    for each in computation.instructions:
        if each.opcode in ("add", "subtract") and dtype(each.shape).startswith(("f", "bf")):
            factors = (
                factor.name
                for factor in computation.operands(each)
                if factor.opcode == "multiply" and len(computation.users[factor.name]) == 1
            )
            found.update(itertools.islice(factors, 1))
    return frozenset(found)


def is_matmul_call(instruction: Instruction) -> bool:
    """Return whether an instruction calls cuBLAS or cuBLASLt for a matrix product."""
    return instruction.opcode == "custom-call" and "dot_dimension_numbers" in instruction.attributes


def is_convolution_call(instruction: Instruction) -> bool:
    """Return whether an instruction calls cuDNN for a convolution."""
    return instruction.attribute("custom_call_target").startswith("__cudnn$conv")


def _plain(instruction: Instruction, lookup: Lookup) -> int:
    opcode = instruction.opcode
    if opcode in _NOTHING:
        return 0
    match opcode:
        case "fft":
            length = math.prod(fft_lengths(instruction))
            count = max(elements(instruction.shape), elements(operand(instruction, lookup, 0)))
            return int(5 * count * math.log2(max(length, 2)))
        case "sort":  # half of the elements in each stage of a bitonic network (`sorts`)
            length, rows = sorted_lengths(instruction) or (0, 0)
            stages = (length - 1).bit_length() if length > 1 else 0
            return rows * (1 << stages) // 2 * stages * (stages + 1) // 2
        case "scatter":
            return elements(operand(instruction, lookup, len(instruction.operands) - 1))
        case "reduce" | "select-and-scatter":
            return elements(operand(instruction, lookup, 0) or instruction.shape)
        case _:  # reduce-window
            window = math.prod(_numbers(instruction.attribute("window"), "size", 1))
            # TPUs have long windows for cumulative sums, which take a step for each doubling; on
            # GPUs they are split (xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc).
            steps = window if window <= _LONG_WINDOW else math.ceil(math.log2(window))
            return elements(instruction.shape) * steps


def fft_lengths(fft: Instruction) -> tuple[int, ...]:
    """Return the lengths of the axes that an FFT transforms."""
    return fft.numbers("fft_length") or (1,)


def operand(instruction: Instruction, lookup: Lookup, index: int) -> str:
    """Return the type of an operand, or `""` if it is unknown."""
    if not 0 <= index < len(instruction.operands):
        return ""
    definition = lookup(instruction.operands[index])
    return definition.shape if definition is not None else ""


def _product(
    instruction: Instruction, lookup: Lookup, products: int, on_matrix_units: bool
) -> Operations:
    """Return two operations per product, or eight for complex numbers."""
    lhs = dtype(operand(instruction, lookup, 0) or instruction.shape)
    rhs = dtype(operand(instruction, lookup, 1) or instruction.shape)
    # The narrower operand is converted to the wider dtype.
    wider = max(lhs, rhs, key=lambda name: (name.startswith("c"), bits(name)))
    count = products * (8 if wider.startswith("c") else 2)
    if not on_matrix_units:
        return Operations(VECTOR, wider, count, _precision(instruction.attributes), FUSED)
    padded = round(count * _padding(instruction, lookup))
    return Operations(MATRIX, wider, count, _precision(instruction.attributes), "", padded)


def _padding(instruction: Instruction, lookup: Lookup) -> float:
    """Return how many products cuDNN's tiles have for each one of a convolution; 0 if unknown."""
    labels = _LABELS.match(instruction.attribute("dim_labels"))
    shapes = [arrays(operand(instruction, lookup, index)) for index in (0, 1)]
    if not is_convolution_call(instruction) or not labels or not all(shapes):
        return 0.0
    if any(_groups(instruction, name) > 1 for name in ("feature", "batch")):
        return 0.0  # Its kernels for groups have no such tiles.
    target = instruction.attribute("custom_call_target")
    is_filter = target == "__cudnn$convBackwardFilter"
    kernel = sizes((arrays(instruction.shape) if is_filter else shapes[1])[0])
    if len(kernel) != len(labels[2]):
        return 0.0
    inner, outer = (kernel[labels[2].index(letter)] for letter in "io")
    if target == "__cudnn$convBackwardInput":
        inner, outer = outer, inner
    padding = math.prod(
        math.ceil(length / tile) * tile / max(length, 1)
        for length, tile in ((inner, _CHANNELS_READ), (outer, _CHANNELS_WRITTEN))
    )
    return min(padding, _MOST_PADDING)


def _precision(attributes: str) -> str:
    if algorithm := _ALGORITHM.search(attributes):
        return algorithm[1].lower()
    precision = _PRECISION.search(attributes)
    words = precision[1].lower() if precision else ""
    return next((word for word in ("highest", "high") if word in words), "")


def _dot(instruction: Instruction, lookup: Lookup) -> int:
    """Return the products of a contraction: elements of the result times the contracted lengths."""
    contracted = _CONTRACTED.search(instruction.attributes)
    lhs = arrays(operand(instruction, lookup, 0))
    lengths = dict(enumerate(sizes(lhs[0]) if lhs else ()))
    axes = dims(contracted[1]) if contracted else ()
    return elements(instruction.shape) * math.prod(lengths.get(axis, 1) for axis in axes)


def _convolution(instruction: Instruction, lookup: Lookup) -> int:
    """Return the products of a convolution, without those with padding and holes of a dilation.

    They are counted like in `HloCostAnalysis::HandleConvolution`
    (xla/service/hlo_cost_analysis.cc).
    TPUs write the batch dimensions of a product as spatial ones, with a dilation that leaves one
    valid position.
    """
    labels = _LABELS.match(instruction.attribute("dim_labels"))
    results = arrays(instruction.shape)
    lefts, rights = (arrays(operand(instruction, lookup, index)) for index in (0, 1))
    if not labels or not lefts or not rights or not results:
        return elements(instruction.shape)
    lhs, kernel, output = sizes(lefts[0]), sizes(rights[0]), sizes(results[0])
    # The labels of cuDNN's calls are those of the forward convolution
    # (xla/service/gpu/transforms/conv_rewriter.cc).
    match instruction.attribute("custom_call_target"):
        case "__cudnn$convBackwardInput":
            lhs, output = output, lhs
        case "__cudnn$convBackwardFilter":
            kernel, output = output, kernel
    sized: list[dict[str, int]] = [
        dict(zip(letters, shape, strict=False))
        for letters, shape in zip(labels.groups(), (lhs, kernel, output), strict=True)
    ]
    lhs_of, kernel_of, output_of = sized
    spatial = sorted(kernel_of.keys() - {"i", "o"})
    if not {"b", "f", *spatial} == lhs_of.keys() == output_of.keys():
        return elements(instruction.shape)
    window = instruction.attribute("window")
    rank = len(spatial)
    steps = [_numbers(window, name, rank) for name in ("stride", "lhs_dilate", "rhs_dilate")]
    products = lhs_of["f"] * output_of["f"] * lhs_of["b"] // _groups(instruction, "feature")
    products //= _groups(instruction, "batch")
    for name, *step in zip(spatial, *steps, _pads(window, rank), strict=False):
        products *= _positions(lhs_of[name], kernel_of[name], output_of[name], *step)
    return products


def _positions(
    length: int, kernel: int, output: int, stride: int, dilation: int, holes: int, pad: int
) -> int:
    """Return the number of (kernel, result) positions that meet an element of the operand."""
    if kernel * output > _LARGE_WINDOW:
        return kernel * output // dilation
    return sum(
        0 <= at < length * dilation and at % dilation == 0
        for first in range(-pad, kernel * holes - pad, holes)
        for at in range(first, first + output * stride, stride)
    )


def _groups(convolution: Instruction, name: str) -> int:
    """Return the groups of `feature` or `batch`."""
    return int(convolution.attribute(f"{name}_group_count") or 1)


def _numbers(window: str, name: str, rank: int) -> list[int]:
    """Return an attribute of a window as a number for each of `rank` axes, 1 by default."""
    numbers = [max(number, 1) for number in dims(attribute(window, name))]
    return numbers + [1] * (rank - len(numbers))


def _pads(window: str, rank: int) -> list[int]:
    """Return the padding before each axis, negative if the operand is cropped."""
    numbers = [int(low) for low in re.findall(r"(-?\d+)_-?\d+", attribute(window, "pad"))]
    return numbers + [0] * (rank - len(numbers))
