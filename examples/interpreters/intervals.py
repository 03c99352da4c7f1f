"""Bounds of all results of a program for bounds of its arguments.

The values of this interpreter are pairs of bounds. Its context is the alarms that it raised.
"""

import jax
import jax.numpy as jnp

from jaxsight_source import Interpreter


def intervals():
    """Return an interpreter whose values are intervals, and the list of its alarms."""
    alarms = []
    domain = Interpreter(lift=lambda x: (jnp.asarray(x), jnp.asarray(x)), decide=lambda x: x[0])

    @domain.rules("add")
    def add(equation, x, y):
        return x[0] + y[0], x[1] + y[1]

    @domain.rules("sub")
    def sub(equation, x, y):
        return x[0] - y[1], x[1] - y[0]

    @domain.rules("mul")
    def mul(equation, x, y):
        ends = jnp.stack([a * b for a in x for b in y])
        return ends.min(0), ends.max(0)

    @domain.rules("square", "integer_pow")
    def power(equation, x):
        low, high = (equation.primitive.bind(end, **equation.params) for end in x)
        least = jnp.where((x[0] <= 0) & (x[1] >= 0), 0.0, jnp.minimum(low, high))
        return jnp.where(equation.params.get("y", 2) % 2 == 0, least, low), jnp.maximum(low, high)

    @domain.rules("exp", "log", "sqrt", "tanh", "lt", "convert_element_type")
    def rising(equation, *values):
        name, low = equation.primitive.name, values[0][0]
        traced = isinstance(low, jax.core.Tracer)  # inside of a loop
        if name in ("log", "sqrt") and not traced and (low < 0).any():
            alarms.append(f"{name} of a number down to {low.min():g}")
        bind = equation.primitive.bind
        return tuple(bind(*ends, **equation.params) for ends in zip(*values, strict=True))

    return domain, alarms
