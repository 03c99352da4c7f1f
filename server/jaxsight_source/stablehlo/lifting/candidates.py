"""The functions that may have been lowered to an operation."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import threefry2x32_p, threefry_prng_impl

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.attributes import integers, struct, symbol
from jaxsight_source.stablehlo.lifting.matching import LoweredCandidate, with_options
from jaxsight_source.stablehlo.operations.regions import constant_of, owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_LAPACK = re.compile(r"lapack_[sdcz](\w+?)_ffi$")

_BOTH = (True, False)

_KEY = jax.ShapeDtypeStruct((2,), np.uint32)


def candidates(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> list[LoweredCandidate]:
    """Return the functions that may have been lowered to an operation and those around it."""
    finder = _FINDERS.get(anchor.name)
    if finder is None:
        return []
    try:
        found = [*finder(anchor)]
        if anchor.name == "func.call":
            found += _called(anchor, functions)
    except UnreadableProgram:  # a type that JAX lacks
        return []
    return found


def _called(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> Iterator[LoweredCandidate]:
    """Yield what a function of a module may be: JAX lowers some primitives to functions."""
    name = symbol(anchor.attributes["callee"])
    operands = tuple(struct(operand.type) for operand in anchor.operands)
    for each in functions[name].regions[0].blocks[0].operations:
        finder = _FINDERS.get(each.operation.name)
        if finder is not None and finder is not _random:
            yield from (one for one in finder(each.operation) if one.inputs == operands)


_Options = Mapping[str, Sequence[Any]]

_QR = lax.linalg.qr, {"full_matrices": _BOTH, "pivoting": _BOTH}
_EIGH = lax.linalg.eigh, {"lower": _BOTH, "symmetrize_input": (False,)}
_TRIDIAGONAL = lax.linalg.tridiagonal, {"lower": _BOTH}
_SVD = {"full_matrices": _BOTH, "compute_uv": _BOTH}
_VECTORS = ("compute_left_eigenvectors", "compute_right_eigenvectors")
_FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")

_ROUTINES: dict[str, tuple[Callable[..., object], _Options]] = {
    "potrf": (lax.linalg.cholesky, {"symmetrize_input": (False,)}), "getrf": (lax.linalg.lu, {}),
    "geqrf": _QR, "geqp3": _QR, "syevd": _EIGH, "heevd": _EIGH,
    "orgqr": (lax.linalg.householder_product, {}), "ungqr": (lax.linalg.householder_product, {}),
    "gesdd": (lax.linalg.svd, _SVD), "sytrd": _TRIDIAGONAL, "hetrd": _TRIDIAGONAL,
    "gesvd": (lax.linalg.svd, _SVD | {"algorithm": (lax.linalg.SvdAlgorithm.QR,)}),
    "geev": (lax.linalg.eig, dict.fromkeys(_VECTORS, _BOTH)),
    "gees": (lax.linalg.schur, {"compute_schur_vectors": _BOTH}),
    "gehrd": (lax.linalg.hessenberg, {}), "gtsv": (lax.linalg.tridiagonal_solve, {}),
    "trsm": (lax.linalg.triangular_solve, dict.fromkeys(_FLAGS, _BOTH)),
}  # fmt: skip
"""The functions that call routines of LAPACK, with the options to try."""


def candidate(
    function: Callable[..., object],
    *inputs: jax.ShapeDtypeStruct,
    calls: bool = False,
    **options: Any,
) -> LoweredCandidate:
    """Return a function with options, which may itself call jitted functions, as a guess."""
    return LoweredCandidate(with_options(function, **options), inputs, calls)


def _foreign(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    target = str(ir.StringAttr(anchor.attributes["call_target_name"]).value)
    operands = tuple(struct(operand.type) for operand in anchor.operands)
    if target == "ApproxTopK":
        yield from _approximate(operands[0], str(anchor))
    if (found := _LAPACK.match(target)) and found[1] in _ROUTINES:
        function, options = _ROUTINES[found[1]]
        for values in itertools.product(*options.values()):
            chosen: dict[str, Any] = dict(zip(options, values, strict=True))
            yield candidate(function, *operands, **chosen)
            if found[1] in ("geqrf", "geqp3"):  # with `jpvt`, which starts from zeros
                yield candidate(function, *operands[:1], **chosen)


def _approximate(operand: jax.ShapeDtypeStruct, text: str) -> Iterator[LoweredCandidate]:
    told = dict(re.findall(r"(\w+) = (-?[\w.+-]+)", text))
    options = {
        "k": int(told["top_k"]),
        "reduction_dimension": int(told["reduction_dim"]),
        "recall_target": float(np.float32(told["recall_target"])),
        "reduction_input_size_override": int(told["reduction_input_size_override"]),
        "aggregate_to_topk": told["aggregate_to_topk"] == "true",
    }
    for function in (lax.approx_max_k, lax.approx_min_k):
        for recall in (options["recall_target"], round(options["recall_target"], 6)):
            yield candidate(function, operand, **(options | {"recall_target": recall}))


def _arguments_of_extremes(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    if len(anchor.operands) != 4:
        return
    values, indices, *_ = (struct(operand.type) for operand in anchor.operands)
    axes = integers(anchor.attributes["dimensions"])
    if len(axes) == 1:
        for function in (lax.argmax, lax.argmin):
            yield candidate(function, values, axis=axes[0], index_dtype=indices.dtype.type)


def _random(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    """Yield what is done to raw keys: `split`, `fold_in`, bits, and the hash that they are."""
    operands = tuple(struct(operand.type) for operand in anchor.operands)
    results = [struct(result.type) for result in anchor.results]
    if any(one.dtype != np.uint32 for one in (*operands, *results)) or not results:
        return
    shape = results[0].shape
    match [one.shape for one in operands]:
        case [(2,)] if len(shape) > 1:
            yield candidate(jax.random.split, *operands, num=shape[:-1])
        case [(2,), ()]:
            yield LoweredCandidate(jax.random.fold_in, operands)
        case [(), (), *_] if len(operands) == 4 and len(results) == 2:
            for width in (32, 64, 16, 8):
                draw = threefry_prng_impl.random_bits
                yield candidate(draw, _KEY, bit_width=width, shape=shape)
            yield LoweredCandidate(threefry2x32_p.bind, operands)


def _generated_bits(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    bits = struct(anchor.results[1].type)
    for algorithm in lax.RandomAlgorithm:
        key = jax.ShapeDtypeStruct((4,), np.uint32)
        for dtype in (bits.dtype, np.dtype(np.uint8), np.dtype(np.uint16)):
            options: dict[str, Any] = {"shape": bits.shape, "dtype": dtype, "algorithm": algorithm}
            yield candidate(lax.rng_bit_generator, key, **options)


def _cumulative(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    values = struct(anchor.operands[0].type)
    sizes = integers(anchor.attributes["window_dimensions"])
    axes = [axis for axis, size in enumerate(sizes) if size > 1 and size == values.shape[axis]]
    for function in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        for axis, reverse in itertools.product(axes[:1], _BOTH):
            yield candidate(function, values, axis=axis, reverse=reverse)


_FINDERS: dict[str, Callable[[ir.Operation], Iterator[LoweredCandidate]]] = {
    "func.call": _random,
    "stablehlo.custom_call": _foreign,
    "stablehlo.reduce_window": _cumulative,
    "stablehlo.reduce": _arguments_of_extremes,
    "stablehlo.rng_bit_generator": _generated_bits,
}


_library = functools.partial(candidate, calls=True)
_MODULES = (jax.nn, jnp, jax.random)
"""Where a function of a name is looked for."""

_MOST_VARIANTS = 12
"""The maximum number of options of a function to try: each is lowered, in some milliseconds."""


def library_calls(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> Iterator[LoweredCandidate]:
    """Yield the calls of library functions that may have been lowered to an operation."""
    try:
        match anchor.name:
            case "func.call":
                yield from _by_name(anchor, functions)
            case "stablehlo.exponential":
                yield from _exponentials(anchor)
            case "stablehlo.tanh" | "chlo.erf" | "chlo.erfc":
                struct = attributes.struct(anchor.operands[0].type)
                for approximate in (True, False):
                    yield _library(jax.nn.gelu, struct, approximate=approximate)
    except UnreadableProgram:  # a type that JAX lacks
        return


def _exponentials(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    struct = attributes.struct(anchor.results[0].type)
    operand = owner_of(anchor.operands[0])
    if operand is not None and operand.name == "stablehlo.negate":
        yield _library(jax.nn.silu, struct)
        yield _library(jax.nn.sigmoid, struct)
    for use in anchor.results[0].uses:
        if use.owner.operation.name == "stablehlo.reduce":
            axis = _axis(use.owner.operation)
            yield _library(jax.nn.softmax, struct, axis=axis)
            yield _library(jax.nn.log_softmax, struct, axis=axis)
            for keeps in (False, True):
                yield _library(jax.nn.logsumexp, struct, axis=axis, keepdims=keeps)


def _axis(reduction: ir.Operation) -> int | tuple[int, ...]:
    axes = tuple(attributes.integers(reduction.attributes["dimensions"]))
    return axes[0] if len(axes) == 1 else axes


def _by_name(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> Iterator[LoweredCandidate]:
    """Yield calls of public functions of the name of the function that is called."""
    callee = attributes.symbol(anchor.attributes["callee"])
    name = callee.strip("_").rstrip("_0123456789")  # MLIR numbers functions of one name
    if callee not in functions:
        return
    block = functions[callee].regions[0].blocks[0]
    constants = [constant_of(operand) for operand in anchor.operands]
    given = [one.item() if one is not None and not one.shape else None for one in constants]
    numbers = [one for one in given if one is not None]
    arrays = tuple(
        attributes.struct(operand.type)
        for operand, one in zip(anchor.operands, constants, strict=True)
        if one is None or one.shape
    )
    result = attributes.struct(anchor.results[0].type) if len(anchor.results) == 1 else None
    for module in _MODULES:
        function = getattr(module, name, None)
        if not callable(function) or not arrays:
            continue
        if numbers and len(numbers) + len(arrays) == len(given):
            yield LoweredCandidate(_with_numbers(function, tuple(given)), arrays, calls=True)
        variants = _variants(function, block, arrays, result, numbers)
        for options in itertools.islice(variants, _MOST_VARIANTS):
            yield _library(function, *arrays, **options)


def _variants(
    function: Callable[..., object],
    block: ir.Block,
    arrays: tuple[jax.ShapeDtypeStruct, ...],
    result: jax.ShapeDtypeStruct | None,
    numbers: list[object],
) -> Iterator[dict[str, Any]]:
    """Yield options of a function: numbers that it is called with, axes, sizes."""
    names = [*inspect.signature(function).parameters]
    fixed: dict[str, Any] = {}
    if result is not None and "shape" in names:
        fixed["shape"] = result.shape
    if result is not None and result.shape and "num_classes" in names:
        fixed["num_classes"] = result.shape[-1]
    rest = [name for name in names[len(arrays) :] if name not in fixed]
    given: list[dict[str, Any]] = [{}]
    if numbers:
        given.append(dict(zip(rest, numbers, strict=False)))
        if "ddof" in names:
            given.append({"ddof": numbers[0]})
    operations = [each.operation for each in block.operations]
    if "k" in names:
        scalars = [constant_of(one.results[0]) for one in operations if one.results]
        given += [{"k": one.item()} for one in scalars if one is not None and one.dtype.kind == "i"]
    axes: list[dict[str, Any]] = [{}]
    if "axis" in names:
        reduced = [_axis(one) for one in operations if one.name == "stablehlo.reduce"]
        axes += [{"axis": axis} for axis in reduced[:1] or range(len(arrays[0].shape))]
        if "keepdims" in names:
            axes += [one | {"keepdims": True} for one in axes]
    for options, axis in itertools.product(given, axes):
        yield fixed | options | axis


@functools.lru_cache(maxsize=512, typed=True)
def _with_numbers(
    function: Callable[..., object], numbers: tuple[object, ...]
) -> Callable[..., object]:
    """Return a function of arrays, with numbers of Python wherever there is one in `numbers`."""

    def called(*arrays: object) -> object:
        rest = iter(arrays)
        return function(*(next(rest) if one is None else one for one in numbers))

    return called
