"""Small functions that XLA fuses into few kernels, or does not.

Open this file in your editor, or try `jaxsight show examples/fusion.py:f_sum_jax`.
"""

import jax
import jax.numpy as jnp


def f_well_fused(x):
    """Elementwise work throughout: XLA makes one kernel of it.

    Example inputs:
        x: f32[131072, 2]
    """
    doubled = x * 2
    rows = jnp.arange(doubled.shape[0])[:, None] * 3
    first = x[0] + x - doubled
    return jnp.sin(doubled) + doubled**2 + rows + first


def kvec_mesh(n):
    return jnp.stack((jnp.arange(n), jnp.arange(n)), axis=-1)


def f_sum_jax(x):
    """A sum over an axis of two ends a kernel.

    Example inputs:
        x: f32[131072, 2]
    """
    kvec = kvec_mesh(len(x))
    return x * 2 + jnp.sum(kvec * x, axis=1, keepdims=True)


def f_sum_explicit(x):
    """The same sum, written out: it fuses with the rest.

    Example inputs:
        x: f32[131072, 2]
    """
    kvec = kvec_mesh(len(x))
    dot = kvec[..., 0] * x[..., 0] + kvec[..., 1] * x[..., 1]
    return x * 2 + dot[:, None]


def f_barrier(x):
    """`optimization_barrier` keeps the two halves apart.

    Example inputs:
        x: f32[131072, 2]
    """
    shifted = jax.lax.optimization_barrier(jnp.sin(x) + 3)
    return shifted + jnp.exp(shifted)


def f_fft3d(x):
    """A real FFT over the leading axes, and back: the vector axis in last place costs transposes.

    Example inputs:
        x: f32[N, N, M, 2]
        where N=64, M=32
    """
    spectrum = jnp.fft.rfftn(x, axes=(0, 1, 2))
    return jnp.fft.irfftn(spectrum, axes=(0, 1, 2))


def f_for(x, unroll=None):
    """Each turn of a loop launches its own kernels, unless the loop is unrolled.

    Example inputs:
        x: f32[131072, 2]
    Example inputs (unrolled):
        unroll: 4
    """

    def square_and_add(_, x):
        squared = x * x
        return squared + 1

    return jax.lax.fori_loop(0, 4, square_and_add, x, unroll=unroll)


def f_recalc(x):
    """An intermediate that is used before and after a reduction: store it, or compute it twice?

    Example inputs:
        x: f32[131072, 2]
    """
    powers = jnp.exp(jnp.arange(x.size).reshape(x.shape) ** 2.3)
    total = x + jnp.sum(powers, axis=-1, keepdims=True)
    return total + powers
