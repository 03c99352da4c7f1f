"""Which program calls the functions of a file: itself, its test, or a program that imports it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jaxsight.features.recording.wanted import imported, text_of
from jaxsight.files import notebooks, reading
from jaxsight.queries.documents import module_name
from jaxsight.recording.observing.functions import ProjectFiles, is_test
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of

_MOST = 300
"""Files of a project that are looked at."""
_TESTS = ("", "tests", "test")
_CONFIGURES = ("jax.config.", "config.", "logging.", "warnings.")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A program that calls the functions of a file."""

    file: Path
    arguments: tuple[str, ...]
    """Of the interpreter."""
    is_tests: bool

    @property
    def title(self) -> str:
        """The command, for people."""
        return " ".join(("python", *self.arguments))


def program_of(path: Path, root: Path) -> Chosen | None:
    """Return the program that calls the functions of a file, by its text and its neighbours.

    The first of these that there is: the file itself, if it is a notebook, tests or a script; its
    test; a script that imports it, the nearest first; tests that import it.
    """
    if path.suffix == notebooks.ENDING or is_test(path.name) or runs(path):
        return _chosen(path, root)
    names = (f"{path.stem}_test.py", f"test_{path.stem}.py")
    folders = [top / name for top in (path.parent, root) for name in _TESTS]
    for file in (folder / name for folder in folders for name in names):
        if reading.is_file(file):
            return _chosen(file, root)
    files = [file for file in islice(_near(path, root), _MOST) if _imports(file, path, root)]
    scripts = (file for file in files if not is_test(file.name) and runs(file, guarded=True))
    found = next(scripts, None) or next((file for file in files if is_test(file.name)), None)
    return _chosen(found, root) if found is not None else None


def runs(path: Path, *, guarded: bool = False) -> bool:
    """Return whether a file does something when it is run.

    Args:
        guarded: whether only `if __name__ == "__main__":` counts.
    """
    text = text_of(path)
    if text is None:
        return False
    chunks = Module.parse(text).chunks
    return any(is_main(chunk) or (not guarded and _acts(chunk)) for chunk in chunks)


def is_main(chunk: ModuleChunk) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    return chunk.text.startswith("if __name__") and "__main__" in chunk.text.split("\n", 1)[0]


def _acts(chunk: ModuleChunk) -> bool:
    """Return whether a statement at the top level does something, as those of scripts do."""
    if chunk.broken is not None:
        return False
    for statement in tree_of(chunk.text).body:
        match statement:
            case ast.Expr(value=ast.Call(func=function)):
                if not ast.unparse(function).startswith(_CONFIGURES):
                    return True
            case ast.For() | ast.While() | ast.With():
                return True
    return False


def _chosen(file: Path, root: Path) -> Chosen:
    """Return how a file is run, in the root of its project."""
    name = os.path.relpath(file, root)
    text = text_of(file) or ""
    if is_test(file.name) and not runs(file, guarded=True):
        return Chosen(file, ("-m", "pytest", "-q", name), True)
    if any(line.startswith("from .") for line in text.split("\n")):
        return Chosen(file, ("-m", module_name(str(file))), is_test(file.name))
    return Chosen(file, (name,), is_test(file.name))


def _imports(file: Path, path: Path, root: Path) -> bool:
    text = text_of(file) if file != path else None
    return text is not None and path.stem in text and path in imported(file, root)


def _near(path: Path, root: Path) -> Iterator[Path]:
    """Yield the Python files of a project, those in a file's own folder first."""
    yield from reading.below(path.parent, "*.py")
    own = ProjectFiles(str(root), tests=True)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if own.is_own(os.path.join(folder, name)))  # noqa: PTH118
        if folder != str(path.parent):
            yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
