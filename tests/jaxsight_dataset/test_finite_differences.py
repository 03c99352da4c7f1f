"""Gradients against finite differences: what passes, what differs, and what says nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight_dataset.rows.directions import forward
from jaxsight_dataset.rows.finite_differences import gradient_problem


def problem(function, x, gradient):
    """Compare a gradient of the sum of a function's results with finite differences."""
    direction = forward(function, (x,))
    cotangent = jnp.ones(direction.program.jaxpr.outvars[0].aval.shape, x.dtype)
    return gradient_problem(
        lambda arrays: [jax.jit(function)(*arrays)], direction, [cotangent], [gradient]
    )


def values(count):
    return jnp.asarray(np.random.default_rng(0).normal(size=count), jnp.float32)


def test_a_gradient_passes():
    x = values(100)
    assert problem(lambda x: jnp.sin(x) * x, x, jnp.cos(x) * x + jnp.sin(x)) == "passed"


def test_a_wrong_gradient_differs():
    x = values(100)
    assert problem(jnp.sin, x, 1.5 * jnp.cos(x)).startswith("differs: relative error")


def test_jumps_of_many_elements_are_no_difference():
    x = values(20_000)
    gradient = jnp.where(x > 0.5, 1.0, 0.0)
    assert problem(lambda x: jnp.where(x > 0.5, x, 2.0), x, gradient) == "passed"


def test_differences_across_a_jump_are_not_compared():
    x = jnp.full(3, 0.5, jnp.float32)
    outcome = problem(lambda x: jnp.where(x > 0.5, x, 2.0), x, jnp.zeros(3))
    assert outcome == "not compared: finite differences do not converge"


@pytest.mark.parametrize("at", range(12))
def test_a_gradient_that_is_wrong_for_one_element_differs(at):
    x = values(12)
    gradient = jnp.cos(x).at[at].add(0.5)
    assert problem(jnp.sin, x, gradient).startswith("differs: relative error")


def test_an_error_that_all_elements_together_hide_differs():
    x = values(12)
    gradient = jnp.cos(x)
    weights = np.random.default_rng(1).normal(size=12)  # of the direction that moves all elements
    hidden = gradient.at[0].add(0.5).at[1].add(-0.5 * weights[0] / weights[1])
    assert problem(jnp.sin, x, hidden).startswith("differs: relative error")


def test_changes_below_the_precision_of_results_are_no_difference():
    x = 1.0 + 0.01 * values(20_000)
    assert problem(jnp.mean, x, jnp.full_like(x, 1 / 20_000)) == "passed"


def test_a_derivative_at_a_kink_is_not_compared():
    x = jnp.zeros(4, jnp.float32)
    outcome = problem(lambda x: jnp.where(x > 0, x, 0), x, jnp.zeros(4))
    assert outcome == "not compared: finite differences do not converge"


def test_values_that_are_rounded_within_are_no_difference():
    x = values(12)
    rounded = lambda x: jnp.sin(x.astype(jnp.bfloat16).astype(jnp.float32))
    outcome = problem(rounded, x, jnp.cos(x))
    assert outcome == "passed" or outcome.startswith("not compared")
