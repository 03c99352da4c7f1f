"""Rules of derivatives that raise, that have no end, or that capture values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight import same_jaxpr, sourcerize
from jaxsight_source.written import Written, load
from tests.jaxsight_source.gate import check_format

X = np.linspace(-1, 1, 3, dtype=np.float32)

RoundTrip = Callable[..., Written]


def test_function_whose_jvp_rule_raises_is_written_and_says_so_when_differentiated(
    round_trip: RoundTrip,
) -> None:
    @jax.custom_jvp
    def opaque(x: Any) -> Any:
        return x * 2

    @opaque.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        raise TypeError("never differentiate me")

    written = round_trip(lambda x: opaque(x) + 1, X)
    check_format(written.text)
    with pytest.raises(NotImplementedError, match="never differentiate me"):
        jax.grad(lambda x: load(written)(x).sum())(X)


def test_function_whose_vjp_rules_raise_is_written_too(round_trip: RoundTrip) -> None:
    @jax.custom_vjp
    def opaque(x: Any) -> Any:
        return x * 2

    def forward(x: Any) -> Any:
        raise ValueError("no")

    opaque.defvjp(forward, lambda _, ct: (ct,))
    written = round_trip(lambda x: opaque(x) + 1, X)
    with pytest.raises(NotImplementedError, match="ValueError: no"):
        jax.grad(lambda x: load(written)(x).sum())(X)


def power(x: Any, n: int) -> Any:
    """Its rule is of a function with another rule, without end."""

    @jax.custom_jvp
    def f(x: Any) -> Any:
        return x**n

    f.defjvp(lambda primals, tangents: (f(*primals), power(primals[0], n + 1) * tangents[0]))
    return f(x)


def test_rules_without_end_are_written_and_compared_for_three_orders(round_trip: RoundTrip) -> None:
    written = round_trip(lambda x: power(x, 1).sum(), X)
    assert "rules are written for 3 orders" in written.text
    made: Any = load(written)
    original: Any = lambda x: power(x, 1).sum()
    for _ in range(3):
        original, made = (_derivative(function) for function in (original, made))
        np.testing.assert_array_equal(np.asarray(original(X)), np.asarray(made(X)))
    with pytest.raises(NotImplementedError, match="3 orders"):
        jax.make_jaxpr(_derivative(made))(X)


def _derivative(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda x: function(x).sum())


def test_function_that_was_cut_within_rules_is_whole_outside_of_them(
    round_trip: RoundTrip,
) -> None:
    def f(x: Any) -> Any:
        return (power(x, 1) + power(x, 3) + power(x, 4)).sum()

    written = round_trip(f, X)
    made = load(written)
    expected, found = (jax.hessian(function)(X) for function in (f, made))
    np.testing.assert_array_equal(np.asarray(expected), np.asarray(found))


def test_function_that_calls_one_that_was_cut_is_whole_outside_of_rules(
    round_trip: RoundTrip,
) -> None:
    def calling(*others: Any) -> Any:
        @jax.custom_jvp
        def f(x: Any) -> Any:
            return x * len(others)

        @f.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            (dot,) = tangents
            for other in others:
                dot = dot + other(dot)
            return f(*primals), dot

        return f

    inner = calling()
    shared = calling(inner)
    outer = calling(calling(calling(inner), shared))

    def both(x: Any) -> Any:
        return outer(x) + shared(x)

    made = load(round_trip(both, X))
    expected, found = (
        jax.make_jaxpr(_derivative(_derivative(function)))(X) for function in (both, made)
    )
    assert same_jaxpr(expected, found) is None


def test_order_of_what_a_function_with_rules_captures_does_not_count() -> None:
    def made(first: str) -> Any:
        def outer(a: Any, b: Any, x: Any) -> Any:
            @jax.custom_jvp
            def f(x: Any) -> Any:
                unused = (a, b) if first == "a" else (b, a)
                jnp.add(*unused)  # captures them in this order, for nothing
                return x * a + b

            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
            return f(x)

        return jax.make_jaxpr(outer)(X, X + 1, X + 2)

    assert same_jaxpr(made("a"), made("b")) is None


def test_values_that_a_function_with_rules_captures_do_count() -> None:
    def made(swapped: bool) -> Any:
        def outer(a: Any, b: Any, x: Any) -> Any:
            first, second = (b, a) if swapped else (a, b)

            @jax.custom_jvp
            def f(x: Any) -> Any:
                return x * first + second

            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
            return f(x)

        return jax.make_jaxpr(outer)(X, X + 1, X + 2)

    assert same_jaxpr(made(False), made(True)) is not None


def test_parameters_may_be_called_like_modules_but_not_the_function(round_trip: RoundTrip) -> None:
    @jax.jit
    def f(np: Any, jax: Any) -> Any:
        return jnp.sin(np) * jax

    written = round_trip(f, X, X)
    assert "def f(np, jax):" in written.text
    with pytest.raises(ValueError, match="choose another name"):
        sourcerize(f, name="lax")(X, X)
