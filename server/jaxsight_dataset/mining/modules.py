"""The modules of a package, where its functions are from, and what importing them must not do."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import io
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jaxsight_dataset.mining import licences
from jaxsight_dataset.mining.calls import NoProgram, Origin

UNLICENSED = "no known licence"
"""A cause: rows of installed packages say under which licence their source is."""

_TESTS = {"tests", "test", "testing", "__main__"}


class NoPackage(Exception):
    """A package is not installed; the text says which."""


def files(package: str) -> dict[str, str]:
    """Return the paths of a package's modules of Python, by name; only the package is imported.

    Raises:
        NoPackage: it is not installed.
    """
    try:
        with silence():
            top = importlib.import_module(package)
    except Exception as error:  # what a package raises, such as for JAX's names that are gone
        raise NoPackage(f"{package} cannot be imported: {error}") from error
    paths = {package: getattr(top, "__file__", None) or ""}
    with silence():  # importing a package inside of it may print, and fail
        for info in pkgutil.walk_packages(
            getattr(top, "__path__", []), f"{package}.", lambda _: None
        ):
            parts = info.name.split(".")
            if _TESTS & set(parts) or "_test" in parts[-1]:
                continue
            spec = info.module_finder.find_spec(info.name, None)
            paths[info.name] = (spec.origin if spec is not None else None) or ""
    return {name: path for name, path in sorted(paths.items()) if path.endswith(".py")}


def origin_of(function: Callable[..., object], project: Mapping[str, str]) -> Origin:
    """Return where a function is from.

    Args:
        function: a function of a module that was imported.
        project: the `package`, `version`, `licence` and `root` of a project that is not installed;
            empty for an installed package.

    Raises:
        NoProgram: the licence of an installed package is not known.
    """
    plain: Any = inspect.unwrap(function)
    top = plain.__module__.partition(".")[0]
    if project:
        package, version, licence = (project[name] for name in ("package", "version", "licence"))
        folder = Path(project["root"])
    else:
        package, version, licence = _distribution(top)
        folder = Path(sys.modules[top].__file__ or "").parent.parent
    code = plain.__code__
    path = Path(code.co_filename)
    path = path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)
    name = f"{plain.__module__}.{plain.__qualname__}"
    place = f"{path.as_posix()}:{code.co_firstlineno}"
    source = ""
    with contextlib.suppress(OSError, TypeError):
        source = inspect.getsource(plain)
    return Origin(name, package, version, place, licence, source)


@cache
def _distribution(top: str) -> tuple[str, str, str]:
    """Return the name, version and licence of the distribution that has a module.

    Raises:
        NoProgram: its licence is not known.
    """
    name = next(iter(importlib.metadata.packages_distributions().get(top, [])), "")
    if not name:
        raise NoProgram(UNLICENSED)
    distribution = importlib.metadata.distribution(name)
    licence = licences.of_distribution(distribution)
    if not licence:
        raise NoProgram(UNLICENSED)
    return name, distribution.version, licence


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Drop what code prints, and put the working directory back."""
    folder = Path.cwd()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            os.chdir(folder)
