"""Names from the user's source alone, where nobody watched the program being made."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxsight_source.api import write


def names(function: Any, *shape: int) -> dict[str, str]:
    """What each name of the written function is the result of."""
    make: Any = jax.ShapeDtypeStruct
    text = write(function, (make(shape, "float32"),), {}).text
    parts = [line.strip().partition(" = ") for line in text.split("\n") if " = " in line]
    return {name: value.removeprefix("lax.").partition("(")[0] for name, _, value in parts}


def layer(v: Any) -> Any:
    inner = jnp.sin(v)
    return jnp.tanh(inner)


def test_value_of_an_expression_has_its_name_and_steps_on_the_way_have_not() -> None:
    def f(x: Any) -> Any:
        weights = jax.nn.softmax(x * 2)
        return -weights

    found = names(f, 3)
    assert found["weights"] == "div"
    assert found["mul"] == "mul"


def test_value_of_a_call_has_the_name_that_the_caller_gives_it() -> None:
    def f(x: Any) -> Any:
        first = layer(x)
        second = layer(first)
        return first + second

    found = names(f, 3)
    assert (found["inner"], found["first"]) == ("sin", "tanh")
    assert (found["inner_1"], found["second"]) == ("sin", "tanh")


def test_call_of_several_results_names_none_of_them_alone() -> None:
    def pair(x: Any) -> Any:
        return jnp.sin(x), jnp.cos(x)

    def f(x: Any) -> Any:
        both = pair(x)
        return both[0] * both[1]

    assert "both" not in names(f, 3)


def test_several_targets_share_the_results_of_one_equation() -> None:
    def f(x: Any) -> Any:
        top, where = jax.lax.top_k(x, 2)
        total = top.sum()
        total += 1
        return total, where

    found = names(f, 5)
    assert found["top, where"] == "top_k"
    assert (found["total"], found["total_1"]) == ("reduce_sum", "add")


def test_in_a_gradient_only_what_is_certain_is_named() -> None:
    def f(x: Any) -> Any:
        h = x @ x
        out = jnp.sin(h)
        return out.sum()

    found = names(jax.grad(f), 4, 4)
    assert found["h"] == "dot_general"
    assert "out" not in found
