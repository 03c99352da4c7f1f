"""jax#33348: a loop that starts from zeros and has an idle loop in its body crashes the compiler."""

import jax
import jax.numpy as jnp
import numpy as np


def main():
    def body(x):
        jax.lax.fori_loop(0, 3, lambda i, state: state, 0)
        return jnp.zeros_like(x)

    return jax.lax.while_loop(lambda x: jnp.any(x != 0), body, jnp.zeros(2, np.int32))


def inputs():
    return ()


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
