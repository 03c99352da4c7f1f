"""Loops and choices that hand values on as they are, as derivatives leave them, are written as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_source.written import Written
from tests.jaxsight_source.gate import check_format

X = jnp.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))

RoundTrip = Callable[..., Written]


def summed(x: Any) -> Any:
    """Its gradient carries the cotangent of the sum, which no step changes."""
    return lax.scan(lambda c, row: (c + jnp.sin(row).sum(), None), 0.0, x)[0]


def kept(x: Any) -> Any:
    """Its gradient scans over what the forward pass kept."""
    total, rows = lax.scan(lambda c, row: (c * row.sum(), row * c), 1.0, x)
    return total + rows.sum()


def looped(x: Any) -> Any:
    """Its tangent has parts that stay as they are."""
    return lax.fori_loop(0, 3, lambda i, c: (c[0] * c[1] + x, c[1]), (x, x.sum()))[0].sum()


def chosen(x: Any) -> Any:
    """Some results are the operands, whichever branch is taken."""
    out = lax.cond(x.sum() > 0, lambda y: (y * 2, y), lambda y: (jnp.sin(y), y), x)
    return (out[0] * out[1]).sum()


@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize("function", [summed, kept, looped, chosen])
def test_gradients(round_trip: RoundTrip, function: Any, style: str) -> None:
    if function is not looped:
        written = round_trip(jax.value_and_grad(function), X, style=style)
        check_format(written.text)
    round_trip(lambda x, t: jax.jvp(function, (x,), (t,)), X, X, style=style)
    round_trip(jax.vmap(lambda x: jax.jvp(function, (x,), (x,))), jnp.stack([X, X]), style=style)


def test_scan_that_captures_and_is_reversed_and_unrolled(round_trip: RoundTrip) -> None:
    def f(x: Any, scale: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            return c + (jnp.sin(row) * scale * 3).sum(), None

        return lax.scan(step, 0.0, x, reverse=True, unroll=2)[0]

    written = round_trip(jax.grad(f), X, jnp.float32(2))
    assert "scan_as_is(" in written.text
    assert "unroll=2" in written.text
    round_trip(jax.grad(f, (0, 1)), X, jnp.float32(2))


def test_scans_within_scans_share_one_helper(round_trip: RoundTrip) -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, row: (c + summed(row[None] * c), None), 1.0, x)[0] + summed(x)

    text = round_trip(jax.grad(f), X).text
    assert text.count("def scan_as_is(") == 1


def test_loop_that_runs_while_any_is_true_and_captures(round_trip: RoundTrip) -> None:
    def f(x: Any, step: Any) -> Any:
        return lax.while_loop(lambda c: c < step * 10, lambda c: c * 2 + step, x)

    round_trip(jax.vmap(f, (0, None)), jnp.arange(1.0, 4.0), jnp.float32(2))
    round_trip(jax.vmap(f), jnp.arange(1.0, 4.0), jnp.arange(2.0, 5.0))
