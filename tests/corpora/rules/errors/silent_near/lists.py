"""Lists that are stacked at the end, and a few arrays that are joined.

https://github.com/jax-ml/jax/issues/919
"""

import jax
import jax.numpy as jnp
import numpy as np


def rows(xs):
    out = []
    for x in xs:
        out.append(jnp.sin(x))
    return jnp.stack(out)


def padded(xs):
    joined = []
    for x in xs:
        row = jnp.concatenate([x, jnp.zeros(3)])
        joined.append(row)
    return joined


def densely(x, layers):
    for layer in layers:
        x = jnp.concatenate([x, layer(x)], axis=-1)
    return x


def window(buffer, xs):
    for x in xs:
        buffer = jnp.concatenate([buffer[1:], x[None]])
    return buffer


def on_host(xs):
    out = np.zeros(0)
    for x in xs:
        out = np.append(out, x)
    return out


def levels(x):
    for _ in range(3):
        x = jnp.concatenate([x, x[::-1]])
    return x
