"""Inverses of linear maps: products with a known square matrix, Fourier transforms, triangular
systems.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight.interpreters.inversion.network import Blocked, Network, Placed, Solution, inverses


@inverses("dot_general")
def _dot_general(placed: Placed, network: Network) -> Solution | Blocked:
    """Solves `x @ matrix = y`: one contracted dimension, a known matrix that is square, no batch
    dimensions.
    """
    (left, right), (result,) = placed.inputs, placed.outputs
    if not (network.knows(left) or network.knows(right)):
        return Blocked("has two arguments, and both depend on what is asked for")
    contracted, (batch, _) = placed.params["dimension_numbers"]
    at = 0 if network.knows(left) else 1
    matrix, unknown = (left, right) if at == 0 else (right, left)
    shape, dtypes = matrix.aval.shape, {each.aval.dtype for each in (left, right, result)}
    if batch or len(contracted[0]) != 1 or len(shape) != 2 or shape[0] != shape[1]:
        return Blocked("is undone only for products with one square matrix")
    if len(dtypes) > 1 or not jnp.issubdtype(result.aval.dtype, np.inexact):
        return Blocked("is undone only for floating point of one dtype")
    (own,), (other,) = contracted[at], contracted[1 - at]
    rank = len(result.aval.shape)

    def compute(y: Any, values: Any) -> list[Any]:
        # The matrix's free dimension is the result's first when the matrix is on the left, its last
        # otherwise.
        free = 0 if at == 0 else rank - 1
        columns = jnp.moveaxis(y, free, 0).reshape(shape[0], -1)
        a = values.T if own == 0 else values
        solved = jnp.linalg.solve(a, columns)
        rest = [size for index, size in enumerate(y.shape) if index != free]
        return [jnp.moveaxis(solved.reshape(shape[0], *rest), 0, other)]

    return Solution((result, matrix), (unknown,), compute)


@inverses("triangular_solve")
def _triangular_solve(placed: Placed, network: Network) -> Solution | Blocked:
    (matrix, unknown), (result,) = placed.inputs, placed.outputs
    params = placed.params
    if not network.knows(matrix):
        return Blocked("is undone only for a known matrix")

    def compute(y: Any, a: Any) -> list[Any]:
        a = jnp.tril(a) if params["lower"] else jnp.triu(a)
        if params["unit_diagonal"]:
            size = a.shape[-1]
            a = jnp.where(jnp.eye(size, dtype=bool), jnp.ones((), a.dtype), a)
        if params["conjugate_a"]:
            a = a.conj()
        if params["transpose_a"]:
            a = jnp.swapaxes(a, -1, -2)
        return [jnp.matmul(a, y) if params["left_side"] else jnp.matmul(y, a)]

    return Solution((result, matrix), (unknown,), compute)


@inverses("fft")
def _fft(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (result,) = placed.inputs, placed.outputs
    undone = {
        lax.FftType.FFT: lax.FftType.IFFT,
        lax.FftType.IFFT: lax.FftType.FFT,
        lax.FftType.RFFT: lax.FftType.IRFFT,
    }.get(lax.FftType(placed.params["fft_type"]))
    lengths = placed.params["fft_lengths"]
    if undone is None:
        return Blocked("to real numbers forgets part of its argument")
    return Solution((result,), (argument,), lambda y: [lax.fft(y, undone, lengths)])
