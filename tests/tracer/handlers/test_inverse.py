"""Inverses of functions as functions of their own: what they take, what they give back, what is
refused.
"""

from __future__ import annotations

import pytest

from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.requests import Sourcerize, TransformedSource
from tests.tracer.handlers.lab import Lab, lab

HEAD = "import jax, jax.numpy as jnp\n"
INVERSE = TransformedSource(transform="inverse")


def inverse_of(file: Lab, function: str = "f", /, **arguments: str) -> list[str]:
    """The lines of the inverse's source, from its `def` on."""
    request = file.request(function, {}, arguments)
    shown = file.ask(Sourcerize(request.id, request, INVERSE))
    text = shown.text.strip()
    return text[text.index("def ") :].split("\n")


def test_inverse_takes_the_result_and_gives_the_argument() -> None:
    file = lab(HEAD + "def f(x):\n    h = jnp.tanh(x)\n    return jnp.exp(h)\n")
    first, *body, last = inverse_of(file, x="f32[3]")
    assert first == "def f_inverse(y):"
    assert [line.partition("lax.")[2] for line in body] == ["log(y)", "atanh(log)"]
    assert last.startswith("    return ")


def test_several_results_are_parameters_and_several_arguments_a_tuple() -> None:
    file = lab(HEAD + "def f(a, b):\n    return a, b * jnp.exp(a)\n")
    first, *_, last = inverse_of(file, a="f32[3]", b="f32[3]")
    assert first == "def f_inverse(y0, y1):"
    assert last.startswith("    return y0, ")


def test_arguments_that_the_results_do_not_determine_are_parameters() -> None:
    file = lab(HEAD + "def f(x, *, y, mode):\n    return x * y\n")
    first, *_ = inverse_of(file, x="f32[3]", y="f32[3]", mode="='train'")
    assert first == "def f_inverse(y_, y):"


def test_operation_without_an_inverse_is_named_with_its_line() -> None:
    file = lab(HEAD + "def f(x):\n    y = x * 2\n    return jnp.sum(y)\n")
    with pytest.raises(UserError) as caught:
        inverse_of(file, x="f32[3]")
    failure = caught.value.failure
    assert (failure.stage, failure.type) == ("sourcerize", "jaxsight.NotInvertible")
    assert failure.message.startswith(
        "f cannot be inverted: reduce_sum adds elements up, and many operands have the same sum\n"
    )
    assert "line 4\n    return jnp.sum(y)" in failure.message


def test_function_without_arrays_is_refused() -> None:
    file = lab(HEAD + "def f(n):\n    return jnp.ones(n)\n")
    with pytest.raises(UserError) as caught:
        inverse_of(file, n="=3")
    assert caught.value.failure.message == "f takes no arrays"
