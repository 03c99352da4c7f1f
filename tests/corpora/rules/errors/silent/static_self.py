"""An attribute of a static `self` is set after the method was compiled with it.

https://github.com/PlasmaControl/DESC/pull/310
"""

from functools import partial

import jax
import jax.numpy as jnp


class Objective:
    def __init__(self, target, weight):
        self.target = target
        self.weight = weight

    def update_target(self, target):
        self.target = target

    @partial(jax.jit, static_argnums=0)
    def compute(self, x):
        return self.weight * jnp.sum((x - self.target) ** 2)  # JX450


objective = Objective(0.0, 1.0)
before = objective.compute(jnp.ones(3))
objective.update_target(2.0)
after = objective.compute(jnp.ones(3))
