"""Inverses of linear maps: products with a known square matrix, FFTs, triangular systems."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.staging import evaluate
from jaxsight_source.inversion.network import Blocked, Network, Placed, Solution, inverses


@inverses("dot_general")
def _dot_general(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve `x @ matrix = y` for a known square matrix, one contraction and no batch dimensions."""
    (left, right), (output,) = placed.inputs, placed.outputs
    if not (network.knows(left) or network.knows(right)):
        return Blocked("has two unknown operands")
    contracted, (batch, _) = placed.params["dimension_numbers"]
    at = 0 if network.knows(left) else 1
    matrix, unknown = (left, right) if at == 0 else (right, left)
    shape, dtypes = matrix.aval.shape, {node.aval.dtype for node in (left, right, output)}
    if batch or len(contracted[0]) != 1 or len(shape) != 2 or shape[0] != shape[1]:
        return Blocked("is invertible for a product with one square matrix only")
    if len(dtypes) > 1 or not jnp.issubdtype(output.aval.dtype, np.inexact):
        return Blocked("is invertible for operands of one floating-point dtype only")
    (contracted_axis,), (unknown_axis,) = contracted[at], contracted[1 - at]
    rank = len(output.aval.shape)

    def compute(y: jax.Array, values: jax.Array) -> list[jax.Array]:
        # The matrix's free dimension is the result's first when the matrix is on the left, its last
        # otherwise.
        free = 0 if at == 0 else rank - 1
        columns = jnp.moveaxis(y, free, 0).reshape(shape[0], -1)
        a = values.T if contracted_axis == 0 else values
        solved = jnp.linalg.solve(a, columns)
        free_shape = [size for index, size in enumerate(y.shape) if index != free]
        return [jnp.moveaxis(solved.reshape(shape[0], *free_shape), 0, unknown_axis)]

    return Solution((output, matrix), (unknown,), compute)


@inverses("triangular_solve")
def _triangular_solve(placed: Placed, network: Network) -> Solution | Blocked:
    (matrix, unknown), (output,) = placed.inputs, placed.outputs
    params = placed.params
    if not network.knows(matrix):
        return Blocked("has an unknown matrix")

    def compute(y: jax.Array, a: jax.Array) -> list[jax.Array]:
        a = jnp.tril(a) if params["lower"] else jnp.triu(a)
        if params["unit_diagonal"]:
            size = a.shape[-1]
            a = jnp.where(jnp.eye(size, dtype=bool), jnp.ones((), a.dtype), a)
        if params["conjugate_a"]:
            a = a.conj()
        if params["transpose_a"]:
            a = jnp.swapaxes(a, -1, -2)
        return [jnp.matmul(a, y) if params["left_side"] else jnp.matmul(y, a)]

    return Solution((output, matrix), (unknown,), compute)


@inverses("fft")
def _fft(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (output,) = placed.inputs, placed.outputs
    undone = {
        lax.FftType.FFT: lax.FftType.IFFT,
        lax.FftType.IFFT: lax.FftType.FFT,
        lax.FftType.RFFT: lax.FftType.IRFFT,
    }.get(lax.FftType(placed.params["fft_type"]))
    lengths = placed.params["fft_lengths"]
    if undone is None:
        return Blocked("to real numbers discards part of its operand")
    return Solution((output,), (argument,), lambda y: [lax.fft(y, undone, lengths)])


@inverses("custom_linear_solve")
def _linear_solve(placed: Placed, network: Network) -> Solution | Blocked:
    """Multiply the solution of a linear system by the system's known matrix."""
    captured = control_flow.captures(placed.equation, placed.inputs)
    assert captured is not None
    _, product, matrix = captured.functions[0]
    if product is None or not network.knows(*matrix):
        return Blocked("has an unknown matrix")

    def compute(*values: jax.Array) -> list[jax.Array]:
        return evaluate(product, *values)

    return Solution((*matrix, *placed.outputs), tuple(captured.others), compute)
