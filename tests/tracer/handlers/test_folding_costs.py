"""What XLA is predicted to compute while it compiles: checked by compiling with and without."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight.tracer.programs import folding_costs as folding

_RNG = np.random.default_rng(0)
SQUARE = _RNG.normal(size=(256, 512)).astype("float32")
LINE = SQUARE.ravel()
N = LINE.size
PLACES = _RNG.integers(0, N, size=N)

FOLDED: dict[str, Callable[[Any], Any]] = {
    "multiply": lambda x: x.ravel() + jnp.asarray(LINE) * lax.iota("float32", N),
    "reverse": lambda x: x.ravel() + jnp.asarray(LINE)[::-1],
    "pad": lambda x: x.ravel() + jnp.pad(LINE[1:], (1, 0)),
    "clamp|maximum": lambda x: x + jnp.clip(jnp.asarray(SQUARE), -1, 1),
    "gather": lambda x: x.ravel() + jnp.arange(N)[PLACES],
    "sort": lambda x: x + lax.top_k(jnp.asarray(LINE[:4_000]), 512)[0],
    "exponential": lambda x: x + jax.nn.softmax(jnp.asarray(SQUARE)),
}
"""By the HLO operation that is gone when XLA has folded."""

KEPT: dict[str, Callable[[Any], Any]] = {
    "tril": lambda x: jnp.where(jnp.tril(jnp.ones(x.shape, bool)), x, -jnp.inf),
    "triu": lambda x: jnp.triu(x, k=1),
    "indices": lambda x: x[jnp.triu_indices(256)],
    "iota": lambda x: x.ravel() + (lax.iota("float32", N) + 1.0),
    "a row of an iota": lambda x: x + jnp.asarray(SQUARE) * jnp.arange(512),
    "eye": lambda x: x @ (jnp.eye(512) * 2),
    "linspace": lambda x: x.ravel() + jnp.sin(jnp.linspace(0, 1, N)),
    "padded ones": lambda x: x.ravel() + jnp.pad(jnp.ones(N - 1), (1, 0)),
    "running sum of ones": lambda x: x.ravel() + jnp.cumsum(jnp.ones(N)),
    "mask": lambda x: x + jnp.where(lax.broadcasted_iota("int32", x.shape, 0) > 3, x, 0.0),
    "checkpoint": lambda x: x + jax.checkpoint(jnp.sin)(jnp.asarray(SQUARE)),
    "captured zeros": lambda x: x + jnp.sin(np.zeros_like(SQUARE)) * jnp.cos(x),
    "captured sequence": lambda x: x.ravel() + jnp.sin(np.arange(N)),
    "random bits": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "loop": lambda x: x + lax.scan(lambda c, row: (c, jnp.sin(row)), 0.0, jnp.asarray(SQUARE))[1],
}


@pytest.mark.parametrize("operation", FOLDED)
def test_what_is_predicted_is_folded(operation: str) -> None:
    traced = jax.jit(FOLDED[operation]).trace(jnp.zeros((256, 512)))
    assert folding.folds(traced.jaxpr)
    assert not re.search(rf"= f32\S* (?:{operation})\(", traced.lower().compile().as_text() or "")


@pytest.mark.parametrize("name", KEPT)
def test_what_xla_keeps_is_not_predicted(name: str) -> None:
    assert not folding.folds(jax.make_jaxpr(KEPT[name])(jnp.zeros((256, 512))))


@pytest.mark.parametrize(("millions", "is_folded"), [(20, True), (25, False)])
def test_operations_with_more_elements_in_all_operands_than_the_limit_are_kept(
    millions: int, is_folded: bool
) -> None:
    captured = np.zeros(millions * 1_000_000, np.int8)
    captured[::7] = 1  # not regular
    traced = jax.jit(lambda x: x[0] + jnp.sum(jnp.asarray(captured) ^ 3)).trace(jnp.zeros(4))
    kinds = [fold.primitive for fold in folding.folds(traced.jaxpr)]
    assert ("xor" in kinds) is is_folded
