"""Interpreters whose values are pytrees of arrays, shown by one that bounds every number from below
and above.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_source import Interpreter
from jaxsight_source.jaxprs.base import Rules

bounds = Interpreter(lift=lambda value: (jnp.asarray(value),) * 2, decide=lambda value: value[0])


@bounds.rules("neg")
def _neg(equation: Any, x: Any) -> Any:
    return -x[1], -x[0]


@bounds.rules("add")
def _add(equation: Any, x: Any, y: Any) -> Any:
    return x[0] + y[0], x[1] + y[1]


@bounds.rules("mul")
def _mul(equation: Any, x: Any, y: Any) -> Any:
    products = jnp.stack([x[i] * y[j] for i in (0, 1) for j in (0, 1)])
    return products.min(0), products.max(0)


@bounds.rules("exp", "tanh", "lt", "convert_element_type")
def _end_by_end(equation: Any, *values: Any) -> Any:
    ends = zip(*values, strict=True)
    return tuple(equation.primitive.bind(*each, **equation.params) for each in ends)


def bounded(function: Any, *ranges: tuple[float, float]) -> tuple[float, float]:
    jaxpr = jax.make_jaxpr(function)(*(0.0 for _ in ranges))
    values = [(jnp.float32(low), jnp.float32(high)) for low, high in ranges]
    (found,) = bounds.run(jaxpr, values)
    return float(found[0]), float(found[1])


def test_rules_are_applied_equation_by_equation() -> None:
    assert bounded(lambda x: -x + 1, (0.0, 2.0)) == (-1.0, 1.0)


@pytest.mark.parametrize(
    "wrap",
    [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.jit(f))],
)
def test_calls_are_run_in_place(wrap: Any) -> None:
    assert bounded(wrap(lambda x: x * x), (-1.0, 2.0)) == (-2.0, 4.0)


def test_functions_with_derivatives_of_their_own_are_run_in_place() -> None:
    @jax.custom_jvp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    assert bounded(doubled, (-1.0, 2.0)) == (-2.0, 4.0)


def test_loops_carry_what_stands_for_their_values() -> None:
    assert bounded(lambda x: lax.fori_loop(0, 3, lambda _, c: c * 2.0, x), (-1.0, 2.0)) == (
        -8.0,
        16.0,
    )


def test_scan_cuts_what_stands_for_its_inputs_into_steps() -> None:
    def summed(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x, -c), 0.0, xs)

    jaxpr = jax.make_jaxpr(summed)(jnp.zeros(3))
    total, partial = bounds.run(jaxpr, [(jnp.zeros(3), jnp.arange(3.0))])
    assert (float(total[0]), float(total[1])) == (0.0, 3.0)
    np.testing.assert_array_equal(partial[0], [0.0, 0.0, -1.0])


def test_while_loops_and_branches_are_decided_by_one_number() -> None:
    def grown(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)

    assert bounded(grown, (3.0, 4.0)) == (12.0, 16.0)
    assert bounded(lambda x: lax.cond(x < 0.0, jnp.negative, jnp.exp, x), (-2.0, -1.0)) == (
        1.0,
        2.0,
    )


def test_interpreters_can_be_traced() -> None:
    jaxpr = jax.make_jaxpr(lambda x: jnp.exp(-x))(0.0)
    run = jax.jit(lambda low, high: bounds.run(jaxpr, [(low, high)])[0])
    np.testing.assert_allclose(run(0.0, 1.0), [np.exp(-1.0), 1.0], rtol=1e-6)


def test_primitive_without_a_rule_is_named() -> None:
    with pytest.raises(NotImplementedError, match="no rule for sin"):
        bounded(jnp.sin, (0.0, 1.0))


def test_primitive_has_one_rule() -> None:
    rules: Rules[Any] = Rules()
    rules("exp")(len)
    with pytest.raises(ValueError, match="two rules for exp"):
        rules("exp", "log")(len)
    assert rules.of("exp") is len
    assert rules.of("sin") is None
