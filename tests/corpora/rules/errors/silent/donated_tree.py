"""An alias in a dict is read after the donation.

https://github.com/liesel-devs/liesel/pull/272
"""

import jax
import jax.numpy as jnp

step = jax.jit(lambda state: {k: v * 2 for k, v in state.items()}, donate_argnums=0)


def run(w):
    state = {"w": w, "b": w * 0.5}
    state = step(state)
    return state["w"] - w  # JX421
