"""What makes two programs the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from jaxsight_dataset.rows.canonical import ProgramDigests, digests
from jaxsight_source.compat.staging import opened


def of(
    function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = jnp.float32
) -> ProgramDigests:
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return digests(opened(jax.make_jaxpr(function)(*arguments)))


def first(x: Any, y: Any) -> Any:
    return jnp.sin(x) * 2.0 + y


def renamed(left: Any, right: Any) -> Any:
    unused = jnp.exp(left)
    del unused
    return right + 3.0 * lax.sin(left)


def swapped(x: Any, y: Any) -> Any:
    return jnp.sin(y) * 2.0 + x


def subtracted(x: Any, y: Any) -> Any:
    return jnp.sin(x) * 2.0 - y


def test_names_order_literals_and_unused_values_have_no_effect() -> None:
    assert of(first, (3,), (3,)).program == of(renamed, (3,), (3,)).program


@pytest.mark.parametrize("other", [swapped, subtracted])
def test_other_operations_and_other_arguments_are_other_programs(
    other: Callable[..., Any],
) -> None:
    assert of(first, (3,), (3,)).structure != of(other, (3,), (3,)).structure


def test_sizes_belong_to_the_program_and_not_to_its_structure() -> None:
    small, large = of(first, (3,), (3,)), of(first, (5,), (5,))
    assert small.program != large.program
    assert small.structure == large.structure
    assert of(first, (3,), (3,), dtype=jnp.float16).structure != small.structure


def test_numbers_in_parameters_belong_to_the_program() -> None:
    def summed(axis: int) -> Callable[[Any], Any]:
        return lambda x: jnp.sum(x, axis=axis)

    rows, columns = of(summed(0), (4, 4)), of(summed(1), (4, 4))
    assert rows.program != columns.program
    assert rows.structure == columns.structure


def test_bodies_count() -> None:
    def loop(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: lax.fori_loop(0, 4, lambda _, value: body(value), x)

    assert of(loop(jnp.sin), (3,)).structure != of(loop(jnp.cos), (3,)).structure
    assert of(loop(jnp.sin), (3,)).program == of(loop(lax.sin), (3,)).program


def test_minhash_estimates_what_two_programs_share() -> None:
    def chain(count: int, last: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            for index in range(count):
                x = (jnp.sin, jnp.cos, jnp.tanh, jnp.exp, jnp.abs)[
                    (index * index + index // 3) % 5
                ](x)
            return last(x)

        return function

    def shared(a: ProgramDigests, b: ProgramDigests) -> float:
        return sum(map(int.__eq__, a.minhash, b.minhash)) / len(a.minhash)

    base = of(chain(60, jnp.sinh), (3,))
    assert shared(base, of(chain(60, jnp.sinh), (9,))) == 1.0
    assert shared(base, of(chain(60, jnp.cosh), (3,))) > 0.6
    assert shared(base, of(first, (3,), (3,))) < 0.2
