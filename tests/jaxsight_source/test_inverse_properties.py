"""Chains of invertible steps, drawn at random: `inverse(f)(f(x))` is `x`, also under `jit`, `vmap`,
within loops and couplings.

Every step maps arrays of four numbers between -1 and 1 to such arrays, and is steep enough for 32
bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from jaxsight import inverse

Step = Callable[[Any], Any]

PLAIN: dict[str, Step] = {
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "arcsin": lambda x: jnp.arcsin(x / 2),
    "arctan": jnp.arctan,
    "halved": lambda x: x * 0.5 + 0.25,
    "mirrored": lambda x: -x,
    "from one": lambda x: (1 - x) / 2,
    "expm1": lambda x: jnp.expm1(x) / 2,
    "log1p": lambda x: jnp.log1p(x / 2),
    "power": lambda x: ((x + 2) ** 2 - 5) / 4,
    "root": lambda x: jnp.sqrt(x + 2) - 1.4,
    "sigmoid": lambda x: jax.nn.sigmoid(x) - 0.5,
    "softplus": lambda x: jax.nn.softplus(x) / 2,
    "erf": lax.erf,
    "cos": lambda x: jnp.cos(x + 1.5) / 1.1,
    "reversed": lambda x: x[::-1],
    "rolled": lambda x: jnp.roll(x, 1),
    "taken": lambda x: x[np.array([2, 0, 3, 1])],
    "laid out": lambda x: x.reshape(2, 2).T.ravel(),
    "summed": lambda x: jnp.cumsum(x) / 4,
}
NAMES = st.sampled_from(sorted(PLAIN))


def chain(names: list[str]) -> Step:
    def run(x: Any) -> Any:
        for name in names:
            x = PLAIN[name](x)
        return x

    return run


def looped(step: Step) -> Step:
    return lambda x: lax.fori_loop(0, 2, lambda _, carry: step(carry), x)


def coupled(step: Step) -> Step:
    """Moves the second half by what the step makes of the first."""

    def run(x: Any) -> Any:
        a, b = jnp.split(x, 2)
        moved = step(jnp.concatenate([a, a]))[:2]
        return jnp.concatenate([b * jnp.exp(moved / 4) / 2 + moved / 4, a])

    return run


WRAPPINGS: list[Callable[[Step], Step]] = [
    jax.jit,
    jax.checkpoint,
    looped,
    coupled,
    lambda step: step,
]

steps = st.builds(
    lambda wrap, names: wrap(chain(names)),
    st.sampled_from(WRAPPINGS),
    st.lists(NAMES, min_size=1, max_size=3),
)
arrays = st.lists(st.floats(-0.875, 0.875, width=32), min_size=4, max_size=4).map(jnp.array)


def composed(parts: list[Step]) -> Step:
    def run(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return run


@settings(max_examples=15, deadline=None)
@given(st.lists(steps, min_size=1, max_size=2).map(composed), arrays)
def test_inverse_undoes_any_chain(function: Step, x: Any) -> None:
    np.testing.assert_allclose(inverse(function)(function(x)), x, atol=2e-2)


@settings(max_examples=5, deadline=None)
@given(st.lists(steps, min_size=1, max_size=2).map(composed), arrays)
def test_inverse_is_the_same_under_jit_and_vmap(function: Step, x: Any) -> None:
    y = function(x)
    batch = jnp.stack([y, y[::-1] * 0 + y])
    plain = inverse(function)(y)
    np.testing.assert_allclose(jax.jit(inverse(function))(y), plain, atol=1e-2)
    for row in jax.vmap(inverse(function))(batch):
        np.testing.assert_allclose(row, plain, atol=1e-2)


@settings(max_examples=5, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=3).map(chain), arrays)
def test_derivative_of_the_inverse_is_the_inverse_of_the_derivative(function: Step, x: Any) -> None:
    forwards = jax.jacobian(function)(x)
    backwards = jax.jacobian(inverse(function))(function(x))
    np.testing.assert_allclose(backwards @ forwards, np.eye(4), atol=5e-2)
