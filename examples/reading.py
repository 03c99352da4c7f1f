"""Ten small functions whose jaxprs, StableHLO and HLO the page *Reading what JAX makes* explains.

Open this file in your editor and show a program beside it: its operations explain themselves.
"""

import jax
import jax.numpy as jnp


def arithmetic(x, y):
    """Scale and add.

    Example inputs:
        x: f32[8]
        y: f32[8]
    """
    return jnp.sin(x) + y * 2


def activation(x):
    """Call functions that JAX has.

    Example inputs:
        x: f32[8]
    """
    gate = jax.nn.sigmoid(x)
    return jax.nn.relu(x * gate)


def rearranged(x, y):
    """Reshape, join and transpose.

    Example inputs:
        x: f32[6]
        y: f32[2, 3]
    """
    rows = x.reshape(2, 3)
    both = jnp.concatenate([rows, y])
    return both.T


def layer(w, b, x):
    """Multiply matrices.

    Example inputs:
        w: f32[8, 4]
        b: f32[4]
        x: f32[2, 8]
    """
    y = x @ w
    return y + b


def centered(x):
    """Subtract the mean of each row.

    Example inputs:
        x: f32[4, 8]
    """
    mean = x.mean(axis=1, keepdims=True)
    return x - mean


def looked_up(table, i):
    """Read and write rows by index.

    Example inputs:
        table: f32[10, 4]
        i: i32[3]
    """
    rows = table[i]
    return table.at[i].set(2 * rows)


def loss(w, x):
    """Reduce to the number that is differentiated.

    Example inputs:
        w: f32[4]
        x: f32[4]
    """
    y = jnp.tanh(w * x)
    return jnp.sum(y)


def gradient(w, x):
    """Differentiate.

    Example inputs:
        w: f32[4]
        x: f32[4]
    """
    return jax.grad(loss)(w, x)


def batched(w, xs):
    """Map over a batch.

    Example inputs:
        w: f32[4, 8]
        xs: f32[16, 8]
    """
    return jax.vmap(jnp.dot, (None, 0))(w, xs)


def chosen(flag, x):
    """Choose between two functions.

    Example inputs:
        flag: bool[]
        x: f32[4]
    """
    return jax.lax.cond(
        flag,
        lambda x: x + 1,
        lambda x: x * 2,
        x,
    )


def loop(w, xs):
    """Run a body for each row.

    Example inputs:
        w: f32[4, 4]
        xs: f32[8, 4]
    """

    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return jax.lax.scan(step, jnp.zeros(4), xs)
