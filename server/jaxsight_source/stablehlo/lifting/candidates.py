"""The functions that may have been lowered to an operation."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import threefry2x32_p, threefry_prng_impl

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.attributes import integers, struct, symbol
from jaxsight_source.stablehlo.lifting.matching import LoweredCandidate, with_options
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


_Options = Mapping[str, Sequence[object]]

_QR = lax.linalg.qr, {"full_matrices": _BOTH, "pivoting": _BOTH}
_EIGH = lax.linalg.eigh, {"lower": _BOTH, "symmetrize_input": (False,)}
_TRIDIAGONAL = lax.linalg.tridiagonal, {"lower": _BOTH}
_SVD = {"full_matrices": _BOTH, "compute_uv": _BOTH}
_FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")

_ROUTINES: dict[str, tuple[Callable[..., object], _Options]] = {
    "potrf": (lax.linalg.cholesky, {"symmetrize_input": (False,)}),
    "getrf": (lax.linalg.lu, {}),
    "geqrf": _QR,
    "geqp3": _QR,
    "orgqr": (lax.linalg.householder_product, {}),
    "ungqr": (lax.linalg.householder_product, {}),
    "gesdd": (lax.linalg.svd, _SVD),
    "gesvd": (lax.linalg.svd, _SVD | {"algorithm": (lax.linalg.SvdAlgorithm.QR,)}),
    "syevd": _EIGH,
    "heevd": _EIGH,
    "geev": (
        lax.linalg.eig,
        {"compute_left_eigenvectors": _BOTH, "compute_right_eigenvectors": _BOTH},
    ),
    "gees": (lax.linalg.schur, {"compute_schur_vectors": _BOTH}),
    "gehrd": (lax.linalg.hessenberg, {}),
    "sytrd": _TRIDIAGONAL,
    "hetrd": _TRIDIAGONAL,
    "gtsv": (lax.linalg.tridiagonal_solve, {}),
    "trsm": (lax.linalg.triangular_solve, dict.fromkeys(_FLAGS, _BOTH)),
}
"""The functions that call routines of LAPACK, with the options to try."""


def _decompositions(name: str) -> Iterator[Callable[..., object]]:
    """Yield the functions that call a routine of LAPACK."""
    if name in _ROUTINES:
        function, options = _ROUTINES[name]
        for values in itertools.product(*options.values()):
            yield with_options(function, **dict(zip(options, values, strict=True)))


def _foreign(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    target = str(ir.StringAttr(anchor.attributes["call_target_name"]).value)
    operands = tuple(struct(operand.type) for operand in anchor.operands)
    if target == "ApproxTopK":
        yield from _approximate(operands[0], str(anchor))
    if found := _LAPACK.match(target):
        for function in _decompositions(found[1]):
            yield LoweredCandidate(function, operands)
            if found[1] in ("geqrf", "geqp3"):  # with `jpvt`, which starts from zeros
                yield LoweredCandidate(function, operands[:1])


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
            yield LoweredCandidate(
                with_options(function, **(options | {"recall_target": recall})), (operand,)
            )


def _arguments_of_extremes(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    if len(anchor.operands) != 4:
        return
    values, indices, *_ = (struct(operand.type) for operand in anchor.operands)
    axes = integers(anchor.attributes["dimensions"])
    if len(axes) == 1:
        for function in (lax.argmax, lax.argmin):
            yield LoweredCandidate(
                with_options(function, axis=axes[0], index_dtype=indices.dtype.type), (values,)
            )


def _random(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    """Yield what is done to raw keys: `split`, `fold_in`, bits, and the hash that they are."""
    operands = tuple(struct(operand.type) for operand in anchor.operands)
    results = [struct(result.type) for result in anchor.results]
    if any(one.dtype != np.uint32 for one in (*operands, *results)) or not results:
        return
    shape = results[0].shape
    match [one.shape for one in operands]:
        case [(2,)] if len(shape) > 1:
            yield LoweredCandidate(with_options(_split, shape[:-1]), operands)
        case [(2,), ()]:
            yield LoweredCandidate(jax.random.fold_in, operands)
        case [(), (), *_] if len(operands) == 4 and len(results) == 2:
            for width in (32, 64, 16, 8):
                yield LoweredCandidate(with_options(_bits, width, shape), (_KEY,))
            yield LoweredCandidate(threefry2x32_p.bind, operands)


def _bits(width: int, shape: tuple[int, ...], key: jax.Array) -> object:
    return threefry_prng_impl.random_bits(key, width, shape)


def _split(shape: tuple[int, ...], key: jax.Array) -> object:
    return jax.random.split(key, shape)


def _generated_bits(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    bits = struct(anchor.results[1].type)
    for algorithm in lax.RandomAlgorithm:
        key = jax.ShapeDtypeStruct((4,), np.uint32)
        yield LoweredCandidate(with_options(_generated, bits.shape, bits.dtype, algorithm), (key,))
        for narrow in (jnp.uint8, jnp.uint16):
            yield LoweredCandidate(
                with_options(_generated, bits.shape, np.dtype(narrow), algorithm), (key,)
            )


def _generated(
    shape: tuple[int, ...], dtype: np.dtype, algorithm: lax.RandomAlgorithm, key: jax.Array
) -> object:
    return lax.rng_bit_generator(key, shape, dtype, algorithm)


def _cumulative(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    values = struct(anchor.operands[0].type)
    sizes = integers(anchor.attributes["window_dimensions"])
    axes = [axis for axis, size in enumerate(sizes) if size > 1 and size == values.shape[axis]]
    for function in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        for axis, reverse in itertools.product(axes[:1], _BOTH):
            yield LoweredCandidate(with_options(function, axis=axis, reverse=reverse), (values,))


_FINDERS: dict[str, Callable[[ir.Operation], Iterator[LoweredCandidate]]] = {
    "func.call": _random,
    "stablehlo.custom_call": _foreign,
    "stablehlo.reduce_window": _cumulative,
    "stablehlo.reduce": _arguments_of_extremes,
    "stablehlo.rng_bit_generator": _generated_bits,
}
