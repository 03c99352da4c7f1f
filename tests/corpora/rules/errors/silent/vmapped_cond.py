"""An environment that resets itself under `vmap` computes the reset in every step.

https://github.com/instadeepai/Mava/issues/1176
"""

import jax
import jax.numpy as jnp


def reset(state):
    return jnp.linalg.inv(jnp.outer(state, state) + jnp.eye(64))[0]


def step(state, action):
    state = state + action
    done = jnp.sum(state) > 100.0
    return jax.lax.cond(done, reset, lambda s: s, state)  # JX212


def steps(states, actions):
    """
    Example inputs:
        states: f32[32, 64]
        actions: f32[32]
    """
    return jax.vmap(step)(states, actions)
