"""jax#39103: the largest element of each column of a product is wrong under jit."""

import jax
import jax.numpy as jnp
import numpy as np


def main(m, x):
    return jnp.max(jnp.abs(m @ x.T), axis=0)


def inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 3)).astype("f4"), rng.normal(size=(40_000, 3)).astype("f4")


if __name__ == "__main__":
    jitted = np.asarray(jax.jit(main)(*inputs()))
    with jax.disable_jit():
        eager = np.asarray(main(*inputs()))
    if not np.allclose(jitted, eager, rtol=1e-2):
        raise AssertionError("jit and eager differ")
