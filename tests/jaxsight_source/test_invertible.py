"""How many of the functions that people write are inverted, and why the others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jaxsight import NotInvertible, inverse
from tests.jaxsight_source.invertible import (
    INVERTIBLE,
    NOT_INVERTIBLE,
    REFUSED,
    VECTOR,
    round_trip,
)


@pytest.mark.parametrize(
    "function", [function for function in INVERTIBLE if function not in REFUSED]
)
def test_function_and_its_inverse_undo_each_other(function: Callable[..., Any]) -> None:
    assert round_trip(function) < 1e-3


@pytest.mark.parametrize("function", REFUSED)
def test_function_that_is_not_inverted_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(NotInvertible):
        round_trip(function)


@pytest.mark.parametrize(("function", "reason"), NOT_INVERTIBLE.items())
def test_function_without_an_inverse_is_refused_with_the_reason(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(NotInvertible) as refusal:
        inverse(function, VECTOR)(function(VECTOR))
    assert reason in str(refusal.value)
