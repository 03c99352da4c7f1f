"""Determine whether code, modules and objects are the user's, a library's, or Python's own.

This uses only the standard library, as it is imported before JAX.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import PurePath
from types import CodeType, FrameType, ModuleType
from typing import Literal

from jaxsight.rewriting.compiling import codes_in
from jaxsight_source.files.ours import OURS

INSTALLED = frozenset({"site-packages", "dist-packages"})

_PYTHON = tuple(
    f"{os.path.realpath(path)}{os.sep}"
    for path in {os.path.dirname(os.__file__), sysconfig.get_path("stdlib")}  # noqa: PTH120
)

Origin = Literal["user", "library", "python"]

USER: Origin = "user"
LIBRARY: Origin = "library"
PYTHON: Origin = "python"

WRAPPERS = 8
"""Wrappers around a function that are opened; without a limit, a cycle never ends."""


@cache
def of_file(path: str) -> Origin:
    """Return `USER`, `LIBRARY` or `PYTHON`; the tracer's own files count as Python's."""
    # The mark in the names of files that chunks are compiled under.
    if "§" in path:
        return USER
    if path.startswith("<frozen "):
        return PYTHON
    if not INSTALLED.isdisjoint(PurePath(path).parts):
        return LIBRARY
    real = os.path.realpath(path)
    return PYTHON if real.startswith((*_PYTHON, OURS)) else USER


def of_module(name: str) -> Origin:
    """Return the origin of a module, by its file or folder.

    A built-in module is Python's, and a removed one the user's.
    """
    module = sys.modules.get(name)
    if module is None:
        return USER
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return of_file(file)
    if (folders := getattr(module, "__path__", None)) is not None:
        try:
            folder = next(iter(folders), None)
        except KeyError:  # the path depends on the package around it, which was removed
            return USER
        if isinstance(folder, str):
            return of_file(folder)  # a package without a module
    top = name.partition(".")[0]
    return PYTHON if top in sys.stdlib_module_names or top == "jaxsight" else LIBRARY


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_users_file(file: str) -> bool:
    """Return whether code of a file, or of a part of one, is the user's."""
    return of_file(file.partition("§")[0]) == USER


def caller(frame: FrameType | None) -> tuple[str, int]:
    """Return the file and the line where the user's code is, from a frame outwards."""
    for each in outwards(frame):
        if is_users_file(each.f_code.co_filename):
            return each.f_code.co_filename, each.f_lineno
    return "", 0


def called_by_user(through: tuple[str, ...]) -> bool:
    """Return whether user code made the current call.

    The caller is the innermost frame that is in none of the modules `through`.
    """
    for frame in outwards(sys._getframe(2)):
        if not frame.f_globals.get("__name__", "").startswith(("jaxsight.", *through)):
            return of_file(frame.f_code.co_filename) == USER
    return False


def names_in(code: CodeType) -> set[str]:
    """Return the globals and attributes that code refers to, including inner functions."""
    return {name for each in codes_in(code) for name in each.co_names}


class SliceLoader(SourceFileLoader):
    """The loader of a traced file.

    It returns the file's text, and marks the module as a slice instead of an import.
    """


def is_imported(module: ModuleType) -> bool:
    """Return whether a module was imported completely, and is no slice."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    is_module = loader is not None and not isinstance(loader, SliceLoader)
    return is_module and not is_being_imported(module)


def is_being_imported(module: ModuleType) -> bool:
    """Return whether the import of a module has begun and not ended."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def is_users(value: object) -> bool:
    """Return whether a function, class or instance is the user's, perhaps wrapped by a library."""
    for _ in range(WRAPPERS):
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            if of_file(code.co_filename) == USER:
                return True
        elif isinstance(value, type):
            return _is_users_class(value)
        inner = wrapped(value)
        if inner is None:
            break
        value = inner
    return _is_users_class(type(value))


def _is_users_class(kind: type) -> bool:
    """Return whether a class is the user's, by its module.

    If that is not loaded (a built-in class may name any module), its methods decide.
    """
    name = str(kind.__module__)
    if name in sys.modules or name == "builtins":
        return name != "builtins" and of_module(name) == USER
    codes = (getattr(member, "__code__", None) for member in vars(kind).values())
    return any(isinstance(code, CodeType) and of_file(code.co_filename) == USER for code in codes)


_WRAPPED = ("__wrapped__", "__func__", "func", "fget", "fun")


def wrapped(value: object) -> object:
    """Return the object that a wrapper wraps, or `None`."""
    return next((inner for name in _WRAPPED if (inner := attribute(value, name)) is not None), None)


def attribute(value: object, name: str) -> object:
    """Return an attribute of any object, or `None` if there is none or reading it fails."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - any attribute of any object
        return None


def equal(before: object, after: object) -> bool:
    """Return whether objects are equal; false if comparing them fails.

    Arrays and user code define comparisons of their own.
    """
    try:
        return bool(before == after)
    except Exception:  # noqa: BLE001 - any comparison of any object
        return False
