"""The module's text says which functions are differentiated, and what computes derivatives."""

from __future__ import annotations

import pytest

from jaxsight.source import differentiated
from jaxsight.source.module import Module

LOSS = """
import jax


def loss(params, x, y=None):
    return params


"""


def module(text: str) -> Module:
    return Module.parse(LOSS + text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train = jax.jit(jax.grad(loss))", {"params"}),
        ("train = jax.value_and_grad(loss, argnums=(0, 1))", {"params", "x"}),
        ("train = jax.grad(loss, 1)", {"x"}),
        ("train = jax.hessian(loss, argnums=-1)", {"y"}),
        ("def step(p, x):\n    return jax.vjp(loss, p, x)", {"params", "x", "y"}),
        ("train = jax.grad(loss, argnums=NUMBERS)", {"params", "x", "y"}),
        ("train = jax.jit(loss)", set()),
        ("train = jax.grad(other)", set()),
        ("train = jax.grad(loss, argnums=7)", set()),
    ],
)
def test_parameters_that_a_function_is_differentiated_by(text: str, expected: set[str]) -> None:
    assert differentiated.parameters(module(text), "loss") == expected


def test_parameters_that_are_chosen_are_not_those_of_transformations_by_all_arguments() -> None:
    text = module("def step(p, x):\n    return jax.vjp(loss, p, x)\ng = jax.grad(loss, 1)")
    assert differentiated.parameters(text, "loss") == {"params", "x", "y"}
    assert differentiated.parameters(text, "loss", chosen=True) == {"x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train = jax.jit(jax.grad(loss))", {"train"}),
        ("self.train = jax.value_and_grad(loss)", {"train"}),
        ("@jax.grad\ndef slope(x):\n    return x", {"slope"}),
        ("gradients = jax.grad(loss)(p, x)", set()),
        ("compiled = jax.jit(loss)", set()),
    ],
)
def test_names_of_what_computes_derivatives(text: str, expected: set[str]) -> None:
    assert differentiated.gradients(module(text)) == expected
