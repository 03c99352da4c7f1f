"""Which functions a run is to reach: those of the files under test, or of the program itself."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from jaxsight.examples.jax_use import JaxUse
from jaxsight.files import reading
from jaxsight.recording.observing.functions import ProjectFiles
from jaxsight.recording.program import StartedProgram
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
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
