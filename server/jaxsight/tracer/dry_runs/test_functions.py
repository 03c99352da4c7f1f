"""Tests as frameworks call them: instances of their classes, parameters, fixtures."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Case = TypeVar("Case")

TURNS = 3
"""Cases of a test with a list of parameters that are run, a choice: others differ little."""
SET_UP = ("setUp", "setup_method")
"""Methods that frameworks call before each test."""


def instance(kind: type, method: str) -> object:
    """Return an instance of a class of tests."""
    import unittest

    try:
        return kind(method) if issubclass(kind, unittest.TestCase) else kind()
    except Exception:  # noqa: BLE001 - user code, or a base class that is not installed
        return object.__new__(kind)


def made_of(kind: type, name: str) -> Sequence[str]:
    """Return some of the methods that `absl` and `chex` make of one with parameters, by name."""
    codes = {
        each: getattr(inspect.unwrap(value), "__code__", None)
        for each, value in vars(kind).items()
        if callable(value)
    }
    made = [each for each, code in codes.items() if code is not None and code.co_name == name]
    return spread(made)


def spread(cases: Sequence[Case]) -> Sequence[Case]:
    """Return the cases that are tried: at most `TURNS`, far from each other."""
    return cases[:: -(-len(cases) // TURNS)] if cases else cases


def cases(function: object) -> int:
    """Return how many cases of `pytest.mark.parametrize` a function is called with."""
    return max((len(values) for _, values in _marks(function)), default=1)


def parametrized(function: object, turn: int) -> Iterator[tuple[str, object]]:
    """Yield the values of `pytest.mark.parametrize` in a turn."""
    for names, values in _marks(function):
        case: Any = values[turn % len(values)]
        case = case.values if type(case).__name__ == "ParameterSet" else case
        is_tuple = len(names) > 1 or case is not values[turn % len(values)]
        with contextlib.suppress(TypeError):
            yield from zip(names, case if is_tuple else [case], strict=False)


def _marks(function: object) -> Iterator[tuple[list[str], Sequence[object]]]:
    """Yield the names and the cases that are tried of each `pytest.mark.parametrize`."""
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(getattr(mark, "args", ())) > 1:
            names, values = mark.args[:2]
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
            if tried := spread([*values]):
                yield listed, tried


def fixture_of(value: object) -> Callable[..., object] | None:
    """Return the function of a pytest fixture, if a value is one."""
    named = "fixture" in type(value).__name__.lower()
    if not named and not hasattr(value, "_pytestfixturefunction"):
        return None
    inner = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    pytest_wrapped = getattr(value, "__pytest_wrapped__", None)
    function: Callable[..., object] | None = getattr(pytest_wrapped, "obj", inner)
    return function
