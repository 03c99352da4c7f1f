"""Report each function that begins to run, where Python has no `sys.monitoring` (before 3.12).

Functions of the project get a first statement that reports them while their module is compiled. A
trace or profile function would slow down every call of the program instead.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType

from jaxsight.files import reading
from jaxsight.recording.observing.observer import Observer
from jaxsight.rewriting import nodes
from jaxsight.rewriting.compiling import compiled

_REPORT = "__jaxsight_began__"
"""The name of the builtin that functions report to."""
_MAIN = "__main__"
_SPAWNED = "--multiprocessing-fork"
"""An argument of processes that `multiprocessing` spawns (`multiprocessing/spawn.py`)."""


def observe(observer: Observer) -> None:
    """Begin to observe modules that are imported from now on, and the program itself."""
    known: set[CodeType] = set()
    get_frame = sys._getframe

    def began() -> None:
        frame = get_frame(1)
        code = frame.f_code
        if code not in known and not (observer.belongs(code) and observer.began(frame)):
            known.add(code)

    setattr(builtins, _REPORT, began)
    sys.meta_path.insert(0, _Finder(observer))
    sys.path_hooks.insert(0, _main_hook(observer))


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module so that its functions report; never from cached bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code."""
        return reporting(self.get_data(self.path), self.path)


class _Finder:
    """Finds the project's modules, as Python does."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of the project, with a loader that instruments it."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        is_file = spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader
        if spec is None or not is_file or not self._observer.files.file(spec.origin or ""):
            return None
        spec.loader = _Loader(name, spec.origin or "")
        return spec


def reporting(text: bytes, path: str, first: Sequence[ast.stmt] = ()) -> CodeType:
    """Return the code of a module whose functions report; `first` are statements before all."""
    return compiled(text, path, functools.partial(_report, first=first))


def _report(tree: ast.Module, first: Sequence[ast.stmt]) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            nodes.begin(node, [nodes.placed(ast.Expr(nodes.call(_REPORT)), node)])
    nodes.begin(tree, first)


def _main_hook(observer: Observer) -> Callable[[str], _Main]:
    """Return a hook that finds the program in its file.

    `python FILE` asks the path hooks whether the file is a folder or an archive with a program in
    it (`pymain_run_python` in CPython's `Modules/main.c`), and runs that as `__main__`. So does
    `runpy.run_path`, by which a process that `multiprocessing` spawns runs the program.
    """

    def hook(path: str) -> _Main:
        words = map(os.path.abspath, sys.orig_argv)
        is_program = os.path.abspath(path) in words or _SPAWNED in sys.orig_argv  # noqa: PTH100
        if not path.endswith(".py") or not is_program:
            raise ImportError(path)
        if not observer.files.file(path) or not reading.is_file(path):
            raise ImportError(path)
        return _Main(_MAIN, path)

    return hook


class _Main(_Loader):
    """Finds and compiles the program in one file, which has what `python FILE` gives it."""

    def find_spec(
        self, name: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the program."""
        if name != _MAIN:
            return None
        return importlib.util.spec_from_file_location(_MAIN, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        """Return the program's code, and put its folder where its file is on the path."""
        folder = str(Path(os.path.realpath(self.path)).parent)
        sys.path[:] = [folder if entry == self.path else entry for entry in sys.path]
        sys.path_importer_cache.pop(self.path, None)
        # `python FILE` sets no spec; `multiprocessing` finds the program by that.
        no_spec = ast.parse("__spec__ = None; __package__ = None").body
        return reporting(self.get_data(self.path), self.path, no_spec)
