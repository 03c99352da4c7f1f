"""Determine whether the code of a file is the user's, a library's, or Python's own."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path, PurePath
from types import FrameType

INSTALLED = frozenset({"site-packages", "dist-packages"})

_PYTHON = tuple(
    f"{os.path.realpath(path)}{os.sep}"
    for path in {os.path.dirname(os.__file__), sysconfig.get_path("stdlib")}  # noqa: PTH120
)
_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"

USER = "user"
LIBRARY = "library"
PYTHON = "python"


@cache
def of_file(path: str) -> str:
    """Return `USER`, `LIBRARY` or `PYTHON`; the tracer's own files count as Python's."""
    if "§" in path:
        return USER
    if path.startswith("<frozen "):
        return PYTHON
    if not INSTALLED.isdisjoint(PurePath(path).parts):
        return LIBRARY
    real = os.path.realpath(path)
    return PYTHON if real.startswith((*_PYTHON, _OURS)) else USER


def of_module(name: str) -> str:
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


def of_frames(frame: FrameType | None) -> set[str]:
    """Return the origins of the code of a frame and its callers."""
    found: set[str] = set()
    while frame is not None:
        found.add(of_file(frame.f_code.co_filename))
        frame = frame.f_back
    return found


def asked_by_user(through: tuple[str, ...]) -> bool:
    """Return whether user code made the current call.

    The caller is the innermost frame that is in none of the modules `through`.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("jaxsight.", *through)):
            return of_file(frame.f_code.co_filename) == USER
        frame = frame.f_back
    return False
