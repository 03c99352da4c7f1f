"""Tests as frameworks call them: instances of their classes, parameters, fixtures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

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


def made_of(kind: type, name: str, wanted: Collection[str]) -> Sequence[str]:
    """Return some of the methods that `absl` and `chex` make of one with parameters, by name."""
    made: dict[str, str] = {}
    for each, value in vars(kind).items():
        code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
        if code is not None and code.co_name == name:
            made[each] = f"{each} {getattr(value, '__doc__', '')}"
    return telling([*made], [*made.values()], wanted)


def telling(every: Sequence[Case], texts: Sequence[str], wanted: Collection[str]) -> Sequence[Case]:
    """Return the cases that are tried, at most `TURNS`: of other names, or far from each other.

    Args:
        every: the cases.
        texts: their parameters as text.
        wanted: the names of functions that they may be about.
    """
    left = {at: {*re.findall(r"\w+", text)} & {*wanted} for at, text in enumerate(texts)}
    chosen: list[int] = []
    for turn in range(min(TURNS, len(every))):
        best = max(left, key=lambda at: len(left[at]))
        if not left[best]:
            best = min(left, key=lambda at: abs(at - turn * len(every) // TURNS))
        found = left.pop(best)
        left = {at: names - found for at, names in left.items()}
        chosen.append(best)
    return [every[at] for at in chosen]


def cases(function: object, wanted: Collection[str]) -> int:
    """Return how many cases of `pytest.mark.parametrize` a function is called with."""
    return max((len(values) for _, values in _marks(function, wanted)), default=1)


def parametrized(
    function: object, turn: int, wanted: Collection[str]
) -> Iterator[tuple[str, object]]:
    """Yield the values of `pytest.mark.parametrize` in a turn."""
    for names, values in _marks(function, wanted):
        value = values[turn % len(values)]
        is_set = type(value).__name__ == "ParameterSet"  # what `pytest.param` returns
        case = getattr(value, "values", ()) if is_set else value if len(names) > 1 else [value]
        if isinstance(case, Iterable):
            yield from zip(names, case, strict=False)


def _marks(
    function: object, wanted: Collection[str]
) -> Iterator[tuple[list[str], Sequence[object]]]:
    """Yield the names and the cases that are tried of each `pytest.mark.parametrize`."""
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(getattr(mark, "args", ())) > 1:
            names, values = mark.args[:2]
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
            every = [*values]
            if tried := telling(every, [*map(repr, every)], wanted):
                yield listed, tried


def fixture_of(value: object) -> Callable[..., object] | None:
    """Return the function of a pytest fixture, if a value is one."""
    named = "fixture" in type(value).__name__.lower()
    if not named and not hasattr(value, "_pytestfixturefunction"):
        return None
    # Versions of pytest keep the function in different attributes.
    inner = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    pytest_wrapped = getattr(value, "__pytest_wrapped__", None)
    function: Callable[..., object] | None = getattr(pytest_wrapped, "obj", inner)
    return function
