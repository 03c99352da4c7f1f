"""The arguments that pytest gives tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


def parametrized(function: object) -> Iterator[tuple[str, object]]:
    """Yield the first values of `pytest.mark.parametrize`."""
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(getattr(mark, "args", ())) > 1:
            names, values = mark.args[:2]
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
            first = next(iter(values), None)
            given = getattr(first, "values", first) if len(listed) > 1 else [first]
            with contextlib.suppress(TypeError):
                yield from zip(listed, given, strict=False)  # type: ignore[arg-type]


def fixture_of(value: object) -> Callable[..., object] | None:
    """Return the function of a pytest fixture, if a value is one."""
    named = "fixture" in type(value).__name__.lower()
    if not named and not hasattr(value, "_pytestfixturefunction"):
        return None
    inner = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    pytest_wrapped = getattr(value, "__pytest_wrapped__", None)
    function: Callable[..., object] | None = getattr(pytest_wrapped, "obj", inner)
    return function
