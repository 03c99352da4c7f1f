"""Options that change what the text looks like around the equations: named scopes, and jitted
functions in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight import same_jaxpr
from jaxsight_source.api import write
from jaxsight_source.compat.locations import scope
from jaxsight_source.compat.staging import opened
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import Written, load
from tests.jaxsight_source.gate import check_format
from tests.jaxsight_source.harnesses import check

X = np.linspace(-1, 1, 6, dtype=np.float32)

RoundTrip = Callable[..., Written]


def scopes(jaxpr: Any) -> Iterator[str]:
    for equation in opened(jaxpr).jaxpr.eqns:
        found = scope(equation)
        named = any(word in found for word in ("norm", "step"))
        yield f"{equation.primitive.name} {found if named else ''}"
        for inner in equation.params.values():
            if hasattr(inner, "eqns"):
                yield from scopes(inner)


def model(x: Any) -> Any:
    with jax.named_scope("norm"):
        mean = x.sum() / 6
        with jax.named_scope("centre"):
            x = jax.lax.sub(x, mean)
        y = jax.lax.sin(x)

    def step(carry: Any, each: Any) -> Any:
        with jax.named_scope("step"):
            return jax.lax.mul(carry, each), None

    return jax.lax.scan(step, y.sum(), y)[0]


@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize("function", [model, jax.grad(model)], ids=["plain", "grad"])
def test_scopes_are_those_of_the_function(
    round_trip: RoundTrip, function: Callable[..., Any], style: str
) -> None:
    written = round_trip(function, X, style=style, scopes=True)
    check_format(written.text)
    assert '"norm/centre"' in written.text or '"jvp(norm)/centre"' in written.text
    if style == "lax":
        made = jax.make_jaxpr(load(written))(X)
        assert list(scopes(made)) == list(scopes(jax.make_jaxpr(function)(X)))


def test_without_the_option_there_are_none(round_trip: RoundTrip) -> None:
    assert "named_scope" not in round_trip(model, X).text


@jax.jit
def inner(x: Any, unused: Any) -> Any:
    return jnp.where(x > 0, x, -jnp.inf) + jax.nn.relu(x), unused * 2


def calls_twice(x: Any) -> Any:
    first, _ = inner(x, x)
    return jax.lax.map(lambda each: inner(each, first)[0].sum(), x)


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_jitted_functions_in_place_are_the_same_program_but_for_their_calls(style: Any) -> None:
    written = write(calls_twice, (X,), {}, SourceOptions(style=style, inline=True, run=False))
    assert "def inner" not in written.text
    assert check(written, calls_twice, (X,), {}) is None
    check_format(written.text)
    made = load(written)
    np.testing.assert_array_equal(np.asarray(calls_twice(X)), np.asarray(made(X)))
    ours, theirs = (jax.make_jaxpr(function)(X) for function in (calls_twice, made))
    assert same_jaxpr(ours, theirs) is not None
    assert same_jaxpr(ours, theirs, through_jits=True) is None


def test_differences_within_jitted_functions_are_found_through_their_calls() -> None:
    def of(factor: float) -> Any:
        return jax.make_jaxpr(lambda x: jax.jit(lambda y: y * factor)(x) + 1)(X)

    assert same_jaxpr(of(2.0), of(2.0), through_jits=True) is None
    assert same_jaxpr(of(2.0), of(3.0), through_jits=True) is not None
    plain = jax.make_jaxpr(lambda x: x * 2.0 + 1)(X)
    assert same_jaxpr(of(2.0), plain, through_jits=True) is None
