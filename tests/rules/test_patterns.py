"""The pattern language of rules."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

import pytest

from jaxsight.rules import patterns
from jaxsight.rules.patterns.written import in_any_order, operands_of, pattern


def test_the_examples_of_its_overview_are_true() -> None:
    assert doctest.testmod(patterns).failed == 0


@pytest.mark.parametrize(
    ("sum_", "terms", "ways"),
    [
        ("a + 1", "x1", ["a=x"]),
        ("a + b", "xy", ["a=x b=y", "a=y b=x"]),
        ("a + b", "xyz", []),
        ("a + b + ...", "xy", ["a=x b=y", "a=y b=x"]),
        ("1 + a + ...", "x1y", ["a=x a1=y", "a=y a1=x"]),
        ("a + a", "xy", []),
    ],
)
def test_terms_of_a_sum_may_be_in_any_order(sum_: str, terms: str, ways: list[str]) -> None:
    def match(part: ast.expr, term: str, found: str) -> Iterator[str]:
        bound = dict(pair.split("=") for pair in found.split())
        match part:
            case ast.Constant(value=1):
                if term == "1":
                    yield found
            case ast.Name(id=hole) if term != "1" and bound.get(hole, term) == term:
                yield found if hole in bound else f"{found} {hole}={term}".strip()

    parts = operands_of(pattern(sum_), ast.Add)
    assert list(in_any_order(parts, list(terms), "", match)) == ways
