"""A linear solve of lineax, whose primitive holds operator and solver as objects, is passed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import lineax
import numpy as np

from jaxsight_source.written import Written

RoundTrip = Callable[..., Written]

MATRIX = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
ROW = np.arange(1, 4, dtype=np.float32)


def test_solve_is_passed_in_with_the_reason(round_trip: RoundTrip) -> None:
    def solve(matrix: Any, vector: Any) -> Any:
        operator = lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, lineax.CG(1e-3, 1e-3)).value

    written = round_trip(solve, MATRIX, ROW)
    assert set(written.passed) == {"linear_solve"}
    assert " at equinox/" in written.placeholders[0].why  # not where it is installed here
