"""Which program calls the functions of a file: itself, its test, or a program that imports it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.programs.entries import Entries, entries_in
from jaxsight.examples.programs.ranking import TextImport, importers_of, imports_in, paths_of
from jaxsight.files import reading
from jaxsight.queries.documents import module_name
from jaxsight.recording.observing.functions import ProjectFiles, is_test
from jaxsight.recording.running import StartedProgram
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import normalized
from jaxsight.text.magics import NOTEBOOK, notebook_text

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
    folders = tuple(map(str, (file.parent, root, root / "src")))
    for each in imports_in(text_of(file) or ""):
        places = paths_of(each, str(file), folders)
        files = (Path(place + end) for place in places for end in (".py", "/__init__.py"))
        if (found := next(filter(reading.is_file, files), None)) is not None:
            yield found


def text_of(file: Path) -> str | None:
    """Return the text of a file, of a notebook that of its cells; `None` if it cannot be read."""
    try:
        if file.suffix == NOTEBOOK:
            return notebook_text(reading.text(file))
        return normalized(reading.source(file))
    except (reading.UnreadableError, ValueError):
        return None


_MOST = 300
"""Files of a project that are looked at, the nearest first: a choice, each is read and searched."""


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
    `if __name__ == "__main__":`; a test of its name; a script that imports it, or imports a file
    that does, the nearest first; the file itself, if its top level does something; other tests.
    """
    is_script = path.suffix == NOTEBOOK or is_test(path.name)
    if is_script or _entries(path).guarded:
        return _chosen(path, root)
    imported_by: dict[str, dict[str, tuple[TextImport, ...]]] = {}
    for file in islice(_near(path, root), _MOST):
        for target in imported(file, root):
            imported_by.setdefault(str(target), {})[str(file)] = ()
    importers = [Path(each.path) for each in importers_of(str(path), imported_by)]
    tests = [file for file in importers if is_test(file.name)]
    named = (f"test_{path.stem}", f"{path.stem}_test")
    own_tests = [file for file in tests if file.stem in named]
    scripts = [f for f in importers if f not in tests and _entries(f).guarded]
    own = [path] if _entries(path).acts else []
    first = next(iter((*own_tests, *scripts, *own, *tests)), None)
    return _chosen(first, root) if first is not None else None


def _entries(path: Path) -> Entries:
    """Return what a file does when it is run."""
    return entries_in(text_of(path) or "", frozenset())


def is_main(chunk: ModuleChunk) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    return chunk.text.startswith("if __name__") and "__main__" in chunk.text.split("\n", 1)[0]


def _chosen(file: Path, root: Path) -> ChosenProgram:
    """Return how a file is run, in the root of its project."""
    name = os.path.relpath(file, root)
    text = text_of(file) or ""
    if is_test(file.name) and not _entries(file).guarded:
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
