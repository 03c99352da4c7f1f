"""Decompositions and solvers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, program


def _square() -> Any:
    a = floats(4, 4)
    return a + 3 * np.eye(4, dtype=np.float32)


def _positive() -> Any:
    a = floats(4, 4)
    return a @ a.T + 4 * np.eye(4, dtype=np.float32)


@program()
def solvers_of_numpy() -> Call:
    def run(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)

    return called(run, _square(), floats(4))


@program(gradient=False)
def packed_factors_of_qr() -> Call:
    def run(a: Any) -> Any:
        return jnp.linalg.qr(a, mode="raw")[0], jnp.linalg.qr(a, mode="r")

    return called(run, floats(4, 3))


@program()
def least_squares_and_pseudoinverse() -> Call:
    def run(a: Any, b: Any) -> Any:
        return jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a)

    return called(run, floats(4, 3), floats(4))


@program()
def cholesky_and_triangular_solves() -> Call:
    def run(a: Any, b: Any) -> Any:
        factor = jnp.linalg.cholesky(a)
        down = lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
        up = lax.linalg.triangular_solve(
            factor,
            b,
            left_side=True,
            lower=True,
            transpose_a=True,
            conjugate_a=True,
            unit_diagonal=True,
        )
        return factor, down, up, lax.linalg.cholesky(a, symmetrize_input=False)

    return called(run, _positive(), floats(4, 2))


@program()
def decompositions_of_symmetric_matrices() -> Call:
    def run(a: Any) -> Any:
        return (
            jnp.linalg.eigh(a),
            jnp.linalg.eigvalsh(a),
            lax.linalg.eigh(a, lower=False, sort_eigenvalues=False),
        )

    return called(run, _positive())


@program(gradient=False)
def decompositions_of_general_matrices() -> Call:
    def run(a: Any) -> Any:
        return (
            jnp.linalg.eig(a), jnp.linalg.svd(a, full_matrices=False), jnp.linalg.svd(a, compute_uv=False),
            jnp.linalg.qr(a), jnp.linalg.qr(a, mode="r"), lax.linalg.lu(a), jax.scipy.linalg.lu(a),
            lax.linalg.qr(a, full_matrices=True, pivoting=True),
        )  # fmt: skip

    return called(run, _square())


@program(gradient=False)
def rarer_decompositions() -> Call:
    def run(a: Any) -> Any:
        hess, taus = lax.linalg.hessenberg(a)
        return (
            hess, lax.linalg.householder_product(hess, taus), lax.linalg.schur(a, sort_eig_vals=False),
            lax.linalg.tridiagonal(a @ a.T), jax.scipy.linalg.schur(a),
        )  # fmt: skip

    return called(run, _square())


@program(gradient=False)
def rarer_solvers() -> Call:
    def run(a: Any, b: Any) -> Any:
        _, pivots, _ = lax.linalg.lu(a)
        return (
            lax.linalg.lu_pivots_to_permutation(pivots, 4), lax.linalg.cholesky_update(jnp.linalg.cholesky(a), b),
            lax.linalg.symmetric_product(a, a, alpha=2.0, beta=0.5, symmetrize_output=True),
            lax.linalg.tridiagonal_solve(b, b + 4, b, b[:, None]),
        )  # fmt: skip

    return called(run, _positive(), floats(4))


@program()
def matrix_functions() -> Call:
    def run(a: Any) -> Any:
        return (
            jax.scipy.linalg.expm(a),
            jnp.linalg.matrix_power(a, 3),
            jnp.linalg.norm(a, ord=2),
            jnp.trace(a),
        )

    return called(run, _square() / 4)


@program(gradient=False)
def square_roots_of_matrices() -> Call:
    return called(lambda a: (jax.scipy.linalg.sqrtm(a), jax.scipy.linalg.polar(a)), _positive())


@program()
def derivatives_of_decompositions() -> Call:
    def loss(a: Any) -> Any:
        values, vectors = jnp.linalg.eigh(a)
        return (values**2).sum() + vectors[0].sum() + jnp.linalg.svd(a, compute_uv=False)[0]

    return called(jax.grad(loss), _positive())


@program()
def batched_solves() -> Call:
    stack = np.stack([_square(), _positive()])
    return called(jax.vmap(jnp.linalg.solve), stack, floats(2, 4, 1))
