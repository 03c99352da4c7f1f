"""Transforms and factorisations are written by their public functions, in the plain style too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_source.written import Written

X = jnp.asarray(np.eye(4, dtype=np.float32) * 3 + 0.5)
C = X.astype("complex64")

RoundTrip = Callable[..., Written]

FUNCTIONS: dict[str, Any] = {
    "lax.fft(": jnp.fft.fft,
    "fft_type=lax.FftType.RFFT": lambda x: lax.fft(x, "RFFT", (4,)),
    "fft_type=lax.FftType.IFFT": lambda x: lax.fft(x.astype("complex64"), "IFFT", (4,)),
    "lax.linalg.svd(": lax.linalg.svd,
    "full_matrices=False": lambda x: jnp.linalg.svd(x, full_matrices=False),
    "compute_uv=False": lambda x: lax.linalg.svd(x, compute_uv=False),
    "lax.linalg.cholesky(": lax.linalg.cholesky,
    "symmetrize_input=False": lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
    "lax.linalg.qr(": jnp.linalg.qr,
    'jnp.linalg.qr(x, mode="raw")': lambda x: jnp.linalg.qr(x, mode="raw"),  # geqrf
    "lax.linalg.eigh(": jnp.linalg.eigh,
    "lax.linalg.lu(": lax.linalg.lu,
    "lax.linalg.schur(": lax.linalg.schur,
    "lax.linalg.tridiagonal(": lax.linalg.tridiagonal,
}


@pytest.mark.parametrize("said", FUNCTIONS)
@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_public_function_says_it(round_trip: RoundTrip, said: str, style: str) -> None:
    written = round_trip(FUNCTIONS[said], X, style=style)
    assert written.bound == ()
    assert written.placeholders == ()
    if style == "lax":
        assert said in written.text


def test_complex_matrices_and_batches(round_trip: RoundTrip) -> None:
    assert round_trip(lax.linalg.cholesky, C).bound == ()
    assert round_trip(lax.linalg.svd, jnp.stack([C, C])).bound == ()
    assert round_trip(jax.vmap(jnp.fft.fft), X).bound == ()


@pytest.mark.parametrize("function", [jnp.linalg.cholesky, jnp.fft.rfft, jnp.linalg.eigh])
def test_gradients(round_trip: RoundTrip, function: Any) -> None:
    def total(x: Any) -> Any:
        leaves = jax.tree.leaves(function(x))
        return jnp.abs(leaves[0]).sum()

    round_trip(jax.grad(total), X)
