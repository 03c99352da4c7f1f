"""jax#40412: a product of rank 7 with an axis of one that is summed crashes when it runs."""

import jax
import jax.numpy as jnp
import numpy as np


def main(a, b):
    return jnp.sum(a * b, axis=3)


def inputs():
    rng = np.random.default_rng(0)
    shape = (3, 1, 2, 2, 8, 8, 8)
    return rng.normal(size=shape).astype("f4"), rng.normal(size=shape).astype("f4")


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
