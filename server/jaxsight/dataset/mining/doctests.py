"""Runs the examples in docstrings, and watches what a package's functions are called with."""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxsight.dataset.mining.calls import Mined
from jaxsight.dataset.mining.modules import origin_of, silence

_MOST_CALLS = 3
"""Calls of one function in one example that become programs."""


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
    if not _is_own(function, module) or ">>>" not in (function.__doc__ or ""):
        return mined
    origin = origin_of(function, project)
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(function, name, loaded, globs=dict(vars(loaded))):
        for args, kwargs in calls(test, function)[:_MOST_CALLS]:
            mined.add(function, args, kwargs, origin)
    return mined


def _is_own(function: Any, module: str) -> bool:
    plain = inspect.unwrap(function) if callable(function) else function
    return (
        isinstance(plain, types.FunctionType)
        and plain.__module__ == module
        and not inspect.isgeneratorfunction(plain)
    )


def calls(
    test: doctest.DocTest, function: Callable[..., Any]
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Run an example; return the arguments of the outermost calls of a function."""
    observed: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    depth = 0

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        if not depth:
            observed.append((args, kwargs))
        depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            depth -= 1

    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    with _replaced(function, watched), silence():
        test.globs.update(
            {name: watched for name, value in test.globs.items() if value is function}
        )
        with contextlib.suppress(BaseException):
            runner.run(test, out=lambda _: None, clear_globs=False)
    return observed


@contextlib.contextmanager
def _replaced(function: Callable[..., Any], watched: Callable[..., Any]) -> Iterator[None]:
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
