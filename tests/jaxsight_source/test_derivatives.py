"""The choice of derivatives: rules of custom derivatives written for three orders, for one, or not
at all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxsight_source import api
from jaxsight_source.errors import TooLong
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import load
from tests.jaxsight_source.harnesses import check

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


@jax.custom_jvp
def softplus(x):
    return jnp.log1p(jnp.exp(x))


@softplus.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), t * clipped(jax.nn.sigmoid(x))


@jax.custom_vjp
def clipped(x):
    return jnp.clip(x, 0.1, 0.9)


clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (2.0 * ct,))


def layered(x):
    return jax.lax.scan(lambda c, _: (softplus(c), clipped(c)), x, length=3)


def written(function, derivatives, *args, style="pretty"):
    made = api.write(function, args, {}, SourceOptions(style, derivatives=derivatives, run=False))
    assert check(made, function, args, {}) is None
    return made


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_primal_writes_what_functions_with_rules_compute(style):
    made = written(layered, "primal", SCALAR, style=style)
    assert "custom_" not in made.text.partition('"""\n')[2]
    assert "Does not keep derivatives" in made.text
    ours, theirs = load(made)(jnp.float32(0.5)), layered(jnp.float32(0.5))
    assert jax.tree.all(jax.tree.map(jnp.array_equal, ours, theirs))


def test_exact_keeps_the_rules_of_rules():
    made = written(softplus, "exact", SCALAR)
    assert made.text.count("@jax.custom_") == 2
    assert jax.grad(jax.grad(load(made)))(0.5) == jax.grad(jax.grad(softplus))(0.5)


def test_first_keeps_one_order_and_refuses_the_next():
    made = written(softplus, "first", SCALAR)
    assert "Keeps first-order derivatives only" in made.text
    function = load(made)
    assert jax.grad(function)(0.5) == jax.grad(softplus)(0.5)
    with pytest.raises(NotImplementedError, match="1 order of derivatives"):
        jax.grad(jax.grad(function))(0.5)


def test_a_difference_of_values_is_seen_whatever_the_derivatives():
    made = written(softplus, "primal", SCALAR)
    assert check(made, jnp.sin, (SCALAR,), {}) is not None


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="derivatives must be one of 'exact', 'first', 'primal'"):
        SourceOptions(derivatives="second")


def test_text_far_longer_than_its_program_is_refused_with_what_to_do():
    def grown(order):
        function = jax.custom_vjp(lambda x: x)
        if order:
            inner = [grown(order - 1) for _ in range(3)]

            def backward(residual, ct):
                for number in range(120):
                    ct = ct * residual + float(number)
                for each in inner:
                    ct = each(ct)
                return (ct,)

        else:

            def backward(residual, ct):
                return (ct,)

        function.defvjp(lambda x: (x, x), backward)
        return function

    with pytest.raises(TooLong, match='derivatives="first"'):
        api.write(grown(3), (SCALAR,), {}, SourceOptions("lax", run=False))
    written(grown(3), "first", SCALAR, style="lax")
