"""Which code belongs to functions of the project that can have example inputs, and its arguments.

This module uses only the standard library: it is imported before the user's program begins.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from jaxsight.files import reading

_LIBRARIES = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})
_SPECIAL = frozenset({"__init__", "__call__"})
"""Methods that Python calls by itself, and that are of use."""
_MODULES = re.compile(r"[/\\](equinox[/\\]nn|flax[/\\]nnx[/\\](nn|training))[/\\]")
"""Files of libraries whose objects are arguments of users' functions: how they are built counts."""
_NESTED = ".<locals>."
_ENDINGS = (".py", ".ipynb")
"""Of files of the project; the cells of a notebook are run by `notebook.py`."""
_MAKERS = re.compile(r"[/\\]optax[/\\]")
"""Files of libraries whose functions make such objects."""
_UNTRACED = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


@dataclass(frozen=True, slots=True)
class ProjectFunction:
    """A function as its file has it: the path relative to the root, and the qualified name.

    The path of a library's constructor is empty.
    """

    file: str
    name: str

    @property
    def is_constructor(self) -> bool:
        """Whether it makes the object that is its first argument."""
        return self.name.endswith(".__init__")

    @property
    def is_maker(self) -> bool:
        """Whether it belongs to a library, and is looked at for what it returns."""
        return not self.file and not self.is_constructor


class ProjectFiles:
    """The files below the root of a project, without those of its environments and its tests."""

    def __init__(self, root: str, *, tests: bool = False) -> None:
        """Take the files below a root; `tests`: those of tests as well."""
        self.root = os.path.realpath(root)
        self._tests = tests
        self._folders: dict[str, bool] = {}
        self._files: dict[str, str] = {}

    def function(self, code: CodeType) -> ProjectFunction | None:
        """Return the function of the project that some code belongs to, if any."""
        if code.co_flags & _UNTRACED or "<" in code.co_qualname.replace(_NESTED, "."):
            return None
        if code.co_name.startswith("__") and code.co_name not in _SPECIAL:
            return None
        if code.co_name == "__init__" and _MODULES.search(code.co_filename):
            return ProjectFunction("", code.co_qualname)
        if _MAKERS.search(code.co_filename) and code.co_qualname.isidentifier():
            return ProjectFunction("", code.co_qualname)
        file = self.file(code.co_filename)
        return ProjectFunction(file, code.co_qualname) if file else None

    def file(self, path: str) -> str:
        """Return the path relative to the root; empty for a file that is not of the project."""
        if (known := self._files.get(path)) is None:
            known = self._files[path] = self._file(path)
        return known

    def _file(self, path: str) -> str:
        if path.startswith("<"):
            return ""
        real = os.path.realpath(path)
        if not real.startswith(self.root + os.sep) or not real.endswith(_ENDINGS):
            return ""
        folder, name = os.path.split(real)
        if not self._tests and (name == "conftest.py" or is_test(name)):
            return ""
        if not self.is_own(folder):
            return ""
        return Path(real).relative_to(self.root).as_posix()

    def is_own(self, folder: str) -> bool:
        """Return whether a folder is the root, or below it and no environment."""
        if folder == self.root:
            return True
        if (known := self._folders.get(folder)) is None:
            above, name = os.path.split(folder)
            known = self._folders[folder] = (
                name not in _LIBRARIES
                and not name.startswith(".")
                and not reading.is_file(Path(folder, "pyvenv.cfg"))
                and self.is_own(above)
            )
        return known


def is_test(name: str) -> bool:
    """Return whether a file has tests, by its name."""
    return name.startswith("test_") or name.endswith("_test.py")


def arguments(frame: FrameType) -> Iterator[tuple[str, object]]:
    """Yield the arguments of the function that a frame begins to run, as `parameters` names them.

    The class of a class method is none.
    """
    code, values = frame.f_code, frame.f_locals
    for at, name in enumerate(parameters(code)):
        value = values[name.lstrip("*")]
        if at or not _is_class_parameter(code, value):
            yield name, value


def parameters(code: CodeType) -> list[str]:
    """Return the parameters of a function in their order, `*args` and `**kwargs` with stars."""
    names = iter(code.co_varnames)
    plain = [*islice(names, code.co_argcount)]
    only_named = [*islice(names, code.co_kwonlyargcount)]
    flags = code.co_flags
    rest = [f"*{next(names)}"] if flags & inspect.CO_VARARGS else []
    options = [f"**{next(names)}"] if flags & inspect.CO_VARKEYWORDS else []
    return [*plain, *rest, *only_named, *options]


def _is_class_parameter(code: CodeType, first: object) -> bool:
    if not isinstance(first, type) or "." not in code.co_qualname:
        return False
    return isinstance(inspect.getattr_static(first, code.co_name, None), classmethod)
