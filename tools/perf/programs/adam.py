"""One step of optax's Adam on a small network's parameters."""

import itertools

import jax
import jax.numpy as jnp
import optax

optimizer = optax.adam(1e-3)


def make_params():
    sizes = [784, 512, 256, 10]
    return [
        {"w": jnp.zeros((inner, outer)), "b": jnp.zeros(outer)}
        for inner, outer in itertools.pairwise(sizes)
    ]


def make_state():
    return optimizer.init(make_params())


def update(params, state, grads):
    """One step.

    Example inputs:
        params = make_params()
        state = make_state()
        grads = make_params()
    """
    grads = jax.tree.map(lambda g: g * 0.5000, grads)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state


ARGUMENTS = (
    jax.eval_shape(make_params),
    jax.eval_shape(make_state),
    jax.eval_shape(make_params),
)
