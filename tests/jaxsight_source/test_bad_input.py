"""What cannot be written is refused with one clear message."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight import sourcerize
from jaxsight_source.written import load

X = jnp.ones(3)


def generator(x: Any) -> Iterator[Any]:
    yield x


async def coroutine(x: Any) -> Any:
    return x


async def stream(x: Any) -> AsyncIterator[Any]:
    yield x


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generator, "generator cannot be written: it is a generator,"),
        (functools.partial(generator), "generator cannot be written: it is a generator,"),
        (coroutine, "coroutine cannot be written: it is an async function,"),
        (stream, "stream cannot be written: it is an async generator,"),
        (Holder, "Holder returns a Holder, not an array"),
        (lambda x: {"a": x, "b": "text"}, "function returns a str, not an array"),
        (3, "int object cannot be written: not a function"),
        (np, "module object cannot be written: not a function"),
        (lambda: None, "too many positional arguments"),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_what_gives_no_arrays_is_refused(function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        sourcerize(function)(X)


def test_function_that_cannot_be_traced_raises_what_jax_says() -> None:
    with pytest.raises(jax.errors.ConcretizationTypeError):
        sourcerize(lambda x: int(x.sum()))(X)


def test_an_error_of_jax_names_the_function_and_its_argument():
    def broken(x, params):
        return x if params["w"][0] else -x

    with pytest.raises(jax.errors.TracerBoolConversionError) as error:
        sourcerize(broken)(X, {"w": [X[0]]})
    assert "tracing the function broken at" in str(error.value)
    assert """of the argument params["w"][0]""" in str(error.value)


def test_static_argument_that_cannot_be_hashed_raises_what_jax_says() -> None:
    @functools.partial(jax.jit, static_argnames="n")
    def f(x: Any, n: Any) -> Any:
        return x

    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        sourcerize(f)(X, n=[1, 2])


def test_builtins_and_ufuncs_are_functions_like_others() -> None:
    assert "return add_1" in sourcerize(sum)([X, X])
    assert "lax.add(" in sourcerize(jnp.add)(X, X)


def test_arrays_of_text_are_built_in() -> None:
    text = sourcerize(lambda x, names: x * len(names))(X, np.array(["a", "b"]))
    assert "lax.mul(x, 2.0)" in text


@pytest.mark.parametrize("option", ["style", "constants", "name"])
def test_words_that_are_no_choice_are_refused(option: str) -> None:
    chosen: dict[str, Any] = {option: "no such"}
    with pytest.raises(ValueError, match="no such"):
        sourcerize(lambda x: x, **chosen)(X)


def test_a_default_that_no_text_can_hold_may_be_left_out(round_trip):
    nothing = object()

    def shifted(x, by=(1, 2), state=nothing):
        return x + by[0] if state is nothing else x

    made = load(round_trip(shifted, jnp.ones(3)))
    assert made(jnp.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="written for by"):
        made(jnp.ones(3), (3, 4))
