"""Which program calls the functions of a file: itself, its test, or a program that imports it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jaxsight.examples.jax_use import JaxUse
from jaxsight.files import reading
from jaxsight.queries.documents import module_name
from jaxsight.recording.observing.functions import ProjectFiles, is_test
from jaxsight.recording.running import StartedProgram
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of
from jaxsight.source.text import normalized
from jaxsight.text.magics import NOTEBOOK, notebook_text
from jaxsight.text.parsing import module_in

Key = tuple[str, str]
"""A file, relative to the root of its project, and the qualified name of a function in it."""

_CALLED_BY_PYTHON = ("__init__", "__post_init__")


def recordable(module: Module) -> Iterator[tuple[ModuleChunk, Function]]:
    """Yield the functions of a module that use JAX and can be called with arrays."""
    jax_use = JaxUse.of(module)
    for chunk, function in module.functions:
        name = function.qualname.rpartition(".")[2]
        if function.refused not in ("", "nested") or name in _CALLED_BY_PYTHON:
            continue
        if function.parameters and jax_use.by(chunk, function):
            yield chunk, function


def functions_of(root: Path, files: Iterable[Path]) -> tuple[Key, ...]:
    """Return the functions of files that a run is to reach, in their order.

    A file outside of the project, or that cannot be read, has none.
    """
    project = ProjectFiles(str(root), tests=True)
    keys: dict[Key, None] = {}
    for file in files:
        name, text = project.file(os.path.abspath(file)), text_of(file)  # noqa: PTH100 - links
        if name and text is not None:
            found = recordable(Module.parse(text))
            keys |= {(name, function.qualname): None for _, function in found}
    return tuple(keys)


def files_reached(ran: StartedProgram, root: Path) -> list[Path]:
    """Return the files whose functions a program is run for.

    For a script that is the script, or if none of its functions uses JAX, what it imports of the
    project; for tests, what these import.
    """
    own = [] if ran.is_tests else list(ran.files)
    if own and functions_of(root, own):
        return own
    found = {path: None for file in ran.files for path in imported(file, root)}
    return [path for path in found if path not in ran.files]


def imported(file: Path, root: Path) -> Iterator[Path]:
    """Yield the files of a project that a module imports, by its text."""
    if (tree := module_in(text_of(file) or "")) is None:
        return
    near = [file.parent, root, root / "src"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(alias.name, near)
        elif isinstance(node, ast.ImportFrom):
            folders = near
            if node.level:
                folders = [Path(file.parent, *[os.pardir] * (node.level - 1)).resolve()]
            yield from _files_of(node.module or "", folders)
            for alias in node.names:
                yield from _files_of(f"{node.module or ''}.{alias.name}".strip("."), folders)


def text_of(file: Path) -> str | None:
    """Return the text of a file, of a notebook that of its cells; `None` if it cannot be read."""
    try:
        if file.suffix == NOTEBOOK:
            return notebook_text(reading.text(file))
        return normalized(reading.source(file))
    except (reading.UnreadableError, ValueError):
        return None


def _files_of(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    parts = name.split(".") if name else []
    for folder in folders:
        path = folder.joinpath(*parts)
        for file in (path.with_suffix(".py") if parts else path, path / "__init__.py"):
            if reading.is_file(file):
                yield file
                return


_MOST = 300
"""Files of a project that are looked at, the nearest first: a choice, each is read and searched."""
_TESTS = ("", "tests", "test")
_CONFIGURES = ("jax.config.", "config.", "logging.", "warnings.")


@dataclass(frozen=True, slots=True)
class ChosenProgram:
    """A program that calls the functions of a file."""

    file: Path
    arguments: tuple[str, ...]
    """Of the interpreter."""
    is_tests: bool

    @property
    def title(self) -> str:
        """The command, for people."""
        return " ".join(("python", *self.arguments))


def program_of(path: Path, root: Path) -> ChosenProgram | None:
    """Return the program that calls the functions of a file, by its text and its neighbours.

    The first of these that there is: the file itself, if it is a notebook, tests, or has
    `if __name__ == "__main__":`; its test; a script that imports it, or imports a file that does,
    the nearest first; the file itself, if its top level does something; tests that import it.
    """
    is_script = path.suffix == NOTEBOOK or is_test(path.name)
    if is_script or runs(path, guarded=True):
        return _chosen(path, root)
    if (test := _test_of(path, root)) is not None:
        return _chosen(test, root)
    imports = {file: set(imported(file, root)) for file in islice(_near(path, root), _MOST)}
    reached, level = {path}, [path]
    tests: list[Path] = []
    while level:
        files = [file for file in imports if any(each in imports[file] for each in level)]
        level = [file for file in files if file not in reached]
        reached.update(level)
        tests += [file for file in level if is_test(file.name)]
        scripts = [file for file in level if not is_test(file.name) and runs(file, guarded=True)]
        if scripts:
            return _chosen(scripts[0], root)
        tests += [test for file in level if (test := _test_of(file, root)) is not None]
    if runs(path):
        return _chosen(path, root)
    return _chosen(tests[0], root) if tests else None


def _test_of(path: Path, root: Path) -> Path | None:
    """Return the file of tests that is named after another file."""
    names = (f"{path.stem}_test.py", f"test_{path.stem}.py")
    folders = [top / name for top in (path.parent, root) for name in _TESTS]
    return next(filter(reading.is_file, (top / name for top in folders for name in names)), None)


def runs(path: Path, *, guarded: bool = False) -> bool:
    """Return whether a file does something when it is run.

    Args:
        guarded: whether only `if __name__ == "__main__":` counts.
    """
    if (text := text_of(path)) is None:
        return False
    for chunk in Module.parse(text).chunks:
        if is_main(chunk):
            return True
        for statement in () if guarded or chunk.broken is not None else tree_of(chunk.text).body:
            match statement:
                case ast.Expr(value=ast.Call(func=function)):
                    if not ast.unparse(function).startswith(_CONFIGURES):
                        return True
                case ast.For() | ast.While() | ast.With():
                    return True
    return False


def is_main(chunk: ModuleChunk) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    return chunk.text.startswith("if __name__") and "__main__" in chunk.text.split("\n", 1)[0]


def _chosen(file: Path, root: Path) -> ChosenProgram:
    """Return how a file is run, in the root of its project."""
    name = os.path.relpath(file, root)
    text = text_of(file) or ""
    if is_test(file.name) and not runs(file, guarded=True):
        return ChosenProgram(file, ("-m", "pytest", "-q", name), True)
    if any(line.startswith("from .") for line in text.split("\n")):
        return ChosenProgram(file, ("-m", module_name(str(file))), is_test(file.name))
    return ChosenProgram(file, (name,), is_test(file.name))


def _near(path: Path, root: Path) -> Iterator[Path]:
    """Yield the Python files of a project, those in a file's own folder first."""
    yield from reading.below(path.parent, "*.py")
    own = ProjectFiles(str(root), tests=True)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if own.is_own(os.path.join(folder, name)))  # noqa: PTH118
        if folder != str(path.parent):
            yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
