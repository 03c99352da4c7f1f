"""Runs the examples in docstrings, and watches what a package's functions are called with."""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import inspect
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_dataset.mining.calls import Mined, NoProgram
from jaxsight_dataset.mining.modules import origin_of, silence

_USUAL = {"jax": jax, "jnp": jnp, "np": np}
"""Names that doctests use, whether they import them or not."""

_MOST_CALLS = 3
"""Calls of one function in one example, and of each that it returns, that become programs, a
choice: further ones would be near duplicates."""


def mine(module: str, name: str, project: Mapping[str, str]) -> Mined:
    """Return programs of the calls that the example of a module's function makes of it.

    Args:
        module: its name.
        name: that of the function.
        project: as `origin_of` takes it.
    """
    mined = Mined()
    try:
        with silence():
            loaded = importlib.import_module(module)
    except BaseException:  # noqa: BLE001 - modules that need what is not installed, or exit
        mined.rejected["module cannot be imported"] += 1
        return mined
    function: Any = vars(loaded).get(name)
    if not _is_own(function, loaded) or ">>>" not in (function.__doc__ or ""):
        return mined
    try:
        origin = origin_of(function, project)
    except NoProgram as reason:
        mined.rejected[reason.cause] += 1
        return mined
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(function, name, loaded, globs={**_USUAL, **vars(loaded)}):
        for call in calls(test, function):
            name_of_part = f"{origin.name}.{call.part}" if call.part else origin.name
            part = replace(origin, name=name_of_part)
            mined.add(call.function, call.args, call.kwargs, part)
    return mined


def _is_own(function: object, module: types.ModuleType) -> bool:
    """Return whether a module defines a function; its `__module__` may name where it is public."""
    plain = inspect.unwrap(function) if callable(function) else function
    return (
        isinstance(plain, types.FunctionType)
        and plain.__code__.co_filename == module.__file__
        and not inspect.isgeneratorfunction(plain)
    )


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A call that was watched; `part` names a function that the function returned, else empty."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    part: str = ""


class _Watch:
    """Notes the outermost calls of a function, and of functions in named tuples that it returns.

    The transformations of gradients of optax are such tuples.
    """

    def __init__(self) -> None:
        self.calls: list[ExampleCall] = []
        self._depth = 0

    def watched(self, function: Callable[..., object], part: str = "") -> Callable[..., object]:
        """Return a function that does the same, and is watched."""

        @functools.wraps(function)
        def noting(*args: object, **kwargs: object) -> object:
            if not self._depth:
                self.calls.append(ExampleCall(function, args, kwargs, part))
            self._depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                self._depth -= 1
            return result if part else self._with_watched_parts(result)

        return noting

    def _with_watched_parts(self, result: object) -> object:
        if not isinstance(result, tuple) or not hasattr(result, "_replace"):
            return result
        parts = {
            name: self.watched(value, name)
            for name, value in result._asdict().items()  # type: ignore[attr-defined]
            if isinstance(value, types.FunctionType)
        }
        return result._replace(**parts)

    def first(self) -> list[ExampleCall]:
        """Return the first calls of each part."""
        counts: Counter[str] = Counter()
        kept = []
        for call in self.calls:
            counts[call.part] += 1
            if counts[call.part] <= _MOST_CALLS:
                kept.append(call)
        return kept


def calls(test: doctest.DocTest, function: Callable[..., object]) -> list[ExampleCall]:
    """Run an example; return the first outermost calls of a function and of what it returns."""
    watch = _Watch()
    watched = watch.watched(function)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    with _replaced(function, watched), silence():
        test.globs.update(
            {name: watched for name, value in test.globs.items() if value is function}
        )
        with contextlib.suppress(BaseException):
            runner.run(test, out=lambda _: None, clear_globs=False)
    return watch.first()


@contextlib.contextmanager
def _replaced(function: Callable[..., object], watched: Callable[..., object]) -> Iterator[None]:
    """Put another function in the place of one, in all modules of its package."""
    package = f"{function.__module__.partition('.')[0]}."
    places = [
        (module, name)
        for key, module in list(sys.modules.items())
        if f"{key}.".startswith(package) and module is not None
        for name, value in list(vars(module).items())
        if value is function
    ]
    for module, name in places:
        setattr(module, name, watched)
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, function)
