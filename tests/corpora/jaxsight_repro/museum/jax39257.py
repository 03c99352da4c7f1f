"""jax#39257: a broadcast product of rank 8 that is summed crashes when it runs."""

import jax
import jax.numpy as jnp
import numpy as np


def main(observed, likelihood):
    return jnp.sum(observed[..., None, None, None, None, None] * likelihood, axis=2)


def inputs():
    return np.ones((10, 4, 6), "f4"), np.ones((10, 4, 6, 9, 9, 9, 9, 9), "f4")


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
