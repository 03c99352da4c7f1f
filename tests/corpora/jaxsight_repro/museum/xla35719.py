"""xla#35719: the operands of independent scatters are all alive at once."""

import jax
import jax.numpy as jnp
import numpy as np


def main(x, y, z):
    counts = jnp.zeros(900, np.int32)
    return [counts.at[30 * first + second].add(1) for first, second in ((x, y), (y, z), (x, z))]


def inputs():
    rng = np.random.default_rng(0)
    return tuple(rng.integers(0, 30, size=100_000).astype("i4") for _ in range(3))


if __name__ == "__main__":
    compiled = jax.jit(main).lower(*inputs()).compile()
    used = compiled.memory_analysis().temp_size_in_bytes
    if used > 1_000_000:
        raise AssertionError(f"temporaries of {used} bytes")
