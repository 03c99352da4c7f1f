"""Comments of written functions: types of values, and the user's lines that they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_source.written import Written

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

RoundTrip = Callable[..., Written]


def layer(x: Any) -> Any:
    h = jnp.sin(x) + 1
    return h * 2


def looped(x: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        total = carry + row.sum()
        return total, total

    return lax.scan(body, 0.0, x)


def body_of(written: Written) -> list[str]:
    """The lines of the last function, unindented."""
    lines = written.text.rstrip().split("\n")
    start = max(index for index, line in enumerate(lines) if line.startswith("def "))
    return [line.strip() for line in lines[start + 1 :]]


def test_source_line_stands_above_the_first_line_that_it_became(round_trip: RoundTrip) -> None:
    assert body_of(round_trip(layer, X, sources=True)) == [
        "# h = jnp.sin(x) + 1",
        "sin = lax.sin(x)",
        "h = lax.add(sin, 1.0)",
        "# return h * 2",
        "mul = lax.mul(h, 2.0)",
        "return mul",
    ]


def test_source_line_stands_above_values_that_were_moved_into_the_result(
    round_trip: RoundTrip,
) -> None:
    assert body_of(round_trip(layer, X, sources=True, style="pretty")) == [
        "# h = jnp.sin(x) + 1",
        "h = jnp.sin(x) + 1.0",
        "# return h * 2",
        "return h * 2.0",
    ]


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_functions_within_have_the_lines_of_theirs(round_trip: RoundTrip, style: str) -> None:
    lines = body_of(round_trip(looped, X, sources=True, style=style))
    assert lines.count("# total = carry + row.sum()") == 1
    assert "# return lax.scan(body, 0.0, x)" in lines
    assert lines.index("# total = carry + row.sum()") > lines.index("def body(carry, row):")


def test_source_of_a_transformation_is_that_of_the_function(round_trip: RoundTrip) -> None:
    written = round_trip(jax.grad(lambda x: layer(x).sum()), X, sources=True)
    assert "# h = jnp.sin(x) + 1" in written.text


def test_type_of_every_value_stands_beside_it(round_trip: RoundTrip) -> None:
    lines = body_of(round_trip(looped, X, shapes=True))
    assert "total = lax.add(cast, total_1)  # f32[]" in lines
    assert any(line.endswith("# f32[], f32[2]") for line in lines), lines


def test_type_goes_above_a_line_that_has_no_room_for_it(round_trip: RoundTrip) -> None:
    def f(x: Any) -> Any:
        broadcasted_value_of_the_argument = jnp.broadcast_to(x[:, None, :, None], (2, 5, 3, 7))
        return broadcasted_value_of_the_argument + 1

    lines = body_of(round_trip(f, X, shapes=True))
    place = next(i for i, line in enumerate(lines) if line.startswith("broadcasted_value"))
    assert lines[place - 1] == "# f32[2,5,3,7]"


def test_both_kinds_of_comments_go_together(round_trip: RoundTrip) -> None:
    lines = body_of(round_trip(layer, X, sources=True, shapes=True, style="pretty"))
    assert "# h = jnp.sin(x) + 1" in lines
    assert any(line.endswith("# f32[2,3]") for line in lines)
