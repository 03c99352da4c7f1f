"""`lax.custom_root` is written with its functions: from JAX 0.12 on it is an equation of its
own.
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

RoundTrip = Callable[..., Written]

X = np.float32(2)
ROW = np.ones(3, np.float32)
MATRIX = jnp.array([[5.0, 1.0, 2.0], [3.0, 9.0, 5.0], [6.0, 7.0, 13.0]])

is_equation = pytest.mark.skipif(
    jax.__version_info__ < (0, 12), reason="before, it is a linear solve with what the solver does"
)


def newton(f: Any, x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda _, x: x - f(x) / (3 * x**2 + 1), x)


def cubic(a: Any) -> Any:
    return lax.custom_root(
        lambda x: x**3 + x - a, jnp.zeros_like(a), newton, lambda g, y: y / g(1.0)
    )


def mixed(tangent_solve: Any) -> Any:
    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda x: MATRIX @ x**3 + x - a, jnp.zeros_like(a), newton, tangent_solve
        )

    return root


def pair(a: Any, b: Any) -> Any:
    def step(f: Any, x: Any) -> Any:
        return tuple(each - 0.1 * change for each, change in zip(x, f(x), strict=True))

    return lax.custom_root(
        lambda x: (x[0] + x[1] - a, x[0] * 2 - x[1] * b),
        (a, b),
        step,
        lambda g, y: (y[0] / g(y)[0], y[1]),
    )


def with_more(a: Any) -> Any:
    return lax.custom_root(
        lambda x: x**3 + x - a,
        jnp.zeros_like(a),
        lambda f, x: (newton(f, x), (f(x), jnp.sin(x))),
        lambda g, y: y / g(1.0),
        has_aux=True,
    )


def looped(a: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, x: cubic(x), a)


def by_jacobian(g: Any, y: Any) -> Any:
    return jnp.linalg.solve(jax.jacrev(g)(y), y)


def by_columns(g: Any, y: Any) -> Any:
    return jnp.linalg.solve(jax.jacfwd(g)(y), y)


def by_iterations(g: Any, y: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(g, y)[0]


@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (cubic, (X,)),
        (pair, (X, X)),
        (with_more, (X,)),
        (looped, (X,)),
        (mixed(by_jacobian), (ROW,)),
        (mixed(by_columns), (ROW,)),
        (mixed(by_iterations), (ROW,)),
    ],
)
def test_its_functions_are_written(
    round_trip: RoundTrip, function: Any, args: Any, style: str
) -> None:
    written = round_trip(function, *args, style=style)
    assert written.placeholders == ()
    assert all(len(line) <= 100 for line in written.text.splitlines())


@is_equation
def test_it_reads_as_its_documentation_does(round_trip: RoundTrip) -> None:
    assert round_trip(cubic, jnp.float32(2), style="pretty").text.partition("\n\n\n")[2] == (
        "def cubic(a):\n"
        "    def function(x):\n"
        "        return x**3 + x - a\n"
        "\n"
        "    def solve(f, x):\n"
        "        def body(i, x_1):\n"
        "            div = f(x_1) / (3.0 * x_1**2 + 1.0)\n"
        "            return x_1 - div\n"
        "\n"
        "        return lax.fori_loop(0, 5, body, x)\n"
        "\n"
        "    def tangent_solve(linear, x):\n"
        "        return x / linear(1.0)\n"
        "\n"
        "    return lax.custom_root(function, np.float32(0.0), solve, tangent_solve)\n"
    )


@is_equation
@pytest.mark.parametrize(
    ("function", "x", "name", "why"),
    [
        (jax.grad(cubic), X, "derivative_of_root", "no public name"),
        (jax.vmap(cubic), ROW, "custom_root", "`vmap` created it"),
        (
            mixed(lambda g, y: jax.jit(lambda y: y / g(y))(y)),
            ROW,
            "custom_root",
            "inside a separate function",
        ),
    ],
)
def test_what_no_public_function_makes_is_passed_in_with_the_reason(
    round_trip: RoundTrip, function: Any, x: Any, name: str, why: str
) -> None:
    (passed,) = round_trip(function, x).placeholders
    assert passed.name == name
    assert why in passed.why
