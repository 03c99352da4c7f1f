"""Functions that name axes of the program around them are traced by themselves."""

from __future__ import annotations

import pytest

from tests.tracer.isolation.driver import Driver

HEAD = "import functools, jax, jax.numpy as jnp\nfrom jax import lax\n"

FUNCTIONS = {
    "mean": ("def f(x):\n    return lax.pmean(x, 'batch')", "f32[4]", ["batch"]),
    "in_grad": (
        "def f(x):\n    return jax.grad(lambda v: lax.psum(v.sum(), 'i'))(x)",
        "f32[4]",
        ["i"],
    ),
    "two": (
        "def f(x):\n    return lax.all_gather(x, 'data'), lax.axis_index('model')",
        "(f32[1,4], i32[])",
        ["data", "model"],
    ),
    "both_at_once": ("def f(x):\n    return lax.pmax(x, ('a', 'b'))", "f32[4]", ["a", "b"]),
    "permuted": (
        "def f(x):\n    return lax.ppermute(x, 'ring', [(0, 0)])",
        "f32[4]",
        ["ring"],
    ),
    "jitted": ("@jax.jit\ndef f(x):\n    return lax.pmean(x, 'batch')", "f32[4]", ["batch"]),
    "of_a_helper": (
        "def mean(x):\n    return lax.pmean(x, 'batch')\n\n\ndef f(x):\n    return mean(x) * 2",
        "f32[4]",
        ["batch"],
    ),
    "some_bound_inside": (
        "def f(x):\n    return lax.psum(jax.vmap(lambda v: lax.psum(v, 'own'), axis_name='own')(x), 'i')",
        "f32[4]",
        ["i"],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes_that_nothing_binds_have_a_size_of_one(tracer: Driver, name: str) -> None:
    source, outputs, axes = FUNCTIONS[name]
    traced = tracer.trace(f"{HEAD}{source}\n", file=f"{name}.py")
    assert traced.outputs == outputs
    assert [caveat.reason for caveat in traced.caveats] == [
        f"names the axis `{axis}`, which nothing here binds: traced with a size of 1"
        for axis in axes
    ]
    assert all(f"'{axis}'" in traced.jaxpr or f"={axis}" in traced.jaxpr for axis in axes)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return jax.vmap(lambda v: lax.psum(v, 'i'), axis_name='i')(x)",
        "def f(x):\n    return x + 1",
    ],
)
def test_axes_that_a_function_binds_are_its_own(tracer: Driver, source: str) -> None:
    assert tracer.trace(f"{HEAD}{source}\n", file="own.py").caveats == ()


def test_an_error_with_such_words_is_an_error(tracer: Driver) -> None:
    source = "def f(x):\n    raise ValueError('unbound axis name: i')\n"
    failure = tracer.fail(HEAD + source, file="raises.py").failure
    assert failure.message == "unbound axis name: i"
