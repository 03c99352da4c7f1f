"""Programs that differ by platform, and results of types that are JAX's own."""

from __future__ import annotations

import subprocess
import sys

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


IMPORTED_LATE = """
import jax.numpy as jnp
from jaxsight import sourcerize

x = jnp.ones((2, 2))
print(sourcerize(jnp.sin)(x))
from jax.experimental import sparse
print(sourcerize(lambda x: sparse.BCOO.fromdense(x, nse=4).todense())(x))
"""


def test_primitives_of_a_module_that_is_imported_later():
    """As in a process that writes one program after another; in one of its own, where nothing has
    imported the module.
    """
    command = [sys.executable, "-W", "ignore", "-c", IMPORTED_LATE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "jax.experimental.sparse.bcoo_fromdense_p.bind(" in done.stdout
