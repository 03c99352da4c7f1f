"""Programs that differ by platform, and results of types that are JAX's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = np.eye(4, dtype=np.float32) * 2 + 1


def test_programs_by_platform(round_trip):
    def by_platform(x):
        return lax.platform_dependent(
            x, cpu=lambda y: y + 1, tpu=jnp.sin, cuda=jnp.sin, default=lambda y: y * 2
        )

    written = round_trip(by_platform, X)
    assert "lax.platform_dependent(" in written.text
    round_trip(jax.value_and_grad(lambda x: jnp.sin(by_platform(jnp.cos(x))).sum()), X)


def test_results_of_types_that_no_public_module_has(round_trip):
    round_trip(jnp.linalg.eigh, X)
    round_trip(jnp.linalg.svd, X)
    round_trip(jax.value_and_grad(lambda x: jnp.linalg.slogdet(x).logabsdet), X)
