"""Runs the examples in docstrings, and watches what a package's functions are called with."""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import importlib.metadata
import inspect
import io
import os
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaxsight.dataset.mining.calls import Origin, program_of
from jaxsight.dataset.program import Program

_MOST_CALLS = 3
"""Calls of one function in one example that become programs."""


class NoPackage(Exception):
    """A package is not installed; the text says which."""


def modules(package: str) -> list[str]:
    """Return the names of a package's modules.

    Raises:
        NoPackage: it is not installed.
    """
    try:
        top = importlib.import_module(package)
    except ImportError as error:
        raise NoPackage(f"{package} cannot be imported: {error}") from error
    names = [package]
    for info in pkgutil.walk_packages(getattr(top, "__path__", []), f"{package}.", lambda _: None):
        parts = info.name.split(".")
        if not {"tests", "test", "testing", "__main__"} & set(parts) and "_test" not in parts[-1]:
            names.append(info.name)
    return sorted(names)


def mine(module: str) -> list[Program]:
    """Return programs of the calls that the examples of a module make of its functions."""
    try:
        with _silence():
            loaded = importlib.import_module(module)
    except BaseException:  # noqa: BLE001 - modules that need what is not installed, or exit
        return []
    finder = doctest.DocTestFinder(recurse=False)
    programs: list[Program] = []
    for name, function in sorted(vars(loaded).items()):
        if not _is_own(function, module) or ">>>" not in (function.__doc__ or ""):
            continue
        origin = origin_of(function)
        for test in finder.find(function, name, loaded, globs=dict(vars(loaded))):
            for args, kwargs in calls(test, function)[:_MOST_CALLS]:
                program = program_of(function, args, kwargs, origin)
                if program is not None:
                    programs.append(program)
    return programs


def _is_own(function: Any, module: str) -> bool:
    plain = inspect.unwrap(function) if callable(function) else function
    return (
        isinstance(plain, types.FunctionType)
        and plain.__module__ == module
        and not inspect.isgeneratorfunction(plain)
    )


def origin_of(function: Callable[..., Any]) -> Origin:
    """Return where a function is from."""
    plain: Any = inspect.unwrap(function)
    top = plain.__module__.partition(".")[0]
    distribution = next(iter(importlib.metadata.packages_distributions().get(top, [])), "")
    version = licence = ""
    if distribution:
        about = importlib.metadata.metadata(distribution)
        version = str(about["Version"] or "")
        licence = _licence(about)
    code = plain.__code__
    folder = Path(sys.modules[top].__file__ or "").parent.parent
    path = Path(code.co_filename)
    with contextlib.suppress(ValueError):
        path = path.relative_to(folder)
    name = f"{plain.__module__}.{plain.__qualname__}"
    place = f"{path}:{code.co_firstlineno}"
    source = ""
    with contextlib.suppress(OSError, TypeError):
        source = inspect.getsource(plain)
    return Origin(name, distribution or top, version, place, licence, source)


def _licence(about: Any) -> str:
    if about["License-Expression"]:
        return str(about["License-Expression"])
    for classifier in about.get_all("Classifier") or []:
        if classifier.startswith("License ::"):
            return str(classifier).rpartition(" :: ")[2]
    return str(about["License"] or "").partition("\n")[0]


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
    with _replaced(function, watched), _silence():
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


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what code prints, and put the working directory back."""
    folder = Path.cwd()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            os.chdir(folder)
