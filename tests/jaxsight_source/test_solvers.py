"""A linear solve of lineax is written as the call that made it, with its operator and solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import lineax
import numpy as np
import pytest

from jaxsight_source.written import Written

RoundTrip = Callable[..., Written]

MATRIX = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
ROW = np.arange(1, 4, dtype=np.float32)


def solved(operator: Any, solver: Any, **told: Any) -> Any:
    def solve(matrix: Any, vector: Any) -> Any:
        return lineax.linear_solve(operator(matrix), vector, solver, **told).value

    return solve


def tridiagonal(matrix: Any) -> Any:
    return lineax.TridiagonalLinearOperator(matrix[0], matrix[1, 1:], matrix[2, 1:])


def tagged(matrix: Any) -> Any:
    return lineax.MatrixLinearOperator(matrix, lineax.positive_semidefinite_tag)


def twice(matrix: Any) -> Any:
    return lineax.TridiagonalLinearOperator(matrix[0], matrix[1, 1:], matrix[1, 1:])


def diagonal(matrix: Any) -> Any:
    return lineax.DiagonalLinearOperator(matrix[0])


@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize(
    ("function", "call"),
    [
        (solved(lineax.MatrixLinearOperator, lineax.LU()), "lineax.LU()"),
        (solved(lineax.MatrixLinearOperator, lineax.QR()), "lineax.QR()"),
        (solved(lineax.MatrixLinearOperator, lineax.SVD(), throw=False), "throw=False"),
        (solved(tagged, lineax.CG(1e-3, 1e-3, max_steps=9)), "max_steps=9"),
        (solved(tridiagonal, lineax.AutoLinearSolver(well_posed=True)), "lineax.Tridiagonal"),
        (solved(twice, lineax.Tridiagonal()), "lineax.Tridiagonal"),
        (solved(diagonal, lineax.Diagonal()), "lineax.DiagonalLinearOperator("),
    ],
)
def test_solution_is_written_as_the_call(
    round_trip: RoundTrip, function: Any, call: str, style: str
) -> None:
    written = round_trip(function, MATRIX, ROW, style=style)
    assert written.placeholders == ()
    assert call in written.text


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_function_of_an_operator_is_written(round_trip: RoundTrip, style: str) -> None:
    def solve(matrix: Any, vector: Any, scale: Any) -> Any:
        operator = lineax.FunctionLinearOperator(lambda x: scale * (matrix @ x), vector)
        return lineax.linear_solve(operator, vector, lineax.GMRES(1e-3, 1e-3)).value

    written = round_trip(solve, MATRIX, jnp.asarray(ROW), jnp.float32(2), style=style)
    assert written.placeholders == ()
    assert "def matvec(vector_1):" in written.text


def test_operator_whose_results_are_a_tuple(round_trip: RoundTrip) -> None:
    def solve(matrix: Any, vector: Any) -> Any:
        operator = lineax.FunctionLinearOperator(lambda x: (matrix @ x, 0.1 * x), vector)
        system = vector, jnp.zeros_like(vector)
        return lineax.linear_solve(operator, system, lineax.QR()).value

    assert round_trip(solve, MATRIX, jnp.asarray(ROW)).placeholders == ()


@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_all_of_a_solution_is_read_by_its_leaves(round_trip: RoundTrip, style: str) -> None:
    def steps(matrix: Any, vector: Any) -> Any:
        solver = lineax.CG(1e-3, 1e-3)
        solution = lineax.linear_solve(tagged(matrix), vector, solver)
        return solution.value, solution.stats["num_steps"]

    written = round_trip(steps, MATRIX, ROW, style=style)
    assert written.placeholders == ()
    assert "jax.tree.leaves(" in written.text


def test_solve_with_options_is_passed_in_with_the_reason(round_trip: RoundTrip) -> None:
    def solve(matrix: Any, vector: Any) -> Any:
        options = {"y0": vector}
        solver = lineax.CG(1e-3, 1e-3)
        return lineax.linear_solve(tagged(matrix), vector, solver, options=options).value

    written = round_trip(solve, MATRIX, ROW)
    assert set(written.passed) == {"linear_solve"}
    assert " at equinox/" in written.placeholders[0].why  # not where it is installed here
