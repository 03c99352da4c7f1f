"""Import files with the editor's text, by a finder that is first on `sys.meta_path`.

It serves only a project's modules: from the editor if a file is open with unsaved changes, else
from disk.
All other modules are found as if this finder did not exist.
It neither reads nor writes bytecode: functions report their calls (`ImportedFunctions`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from jaxsight.files import reading
from jaxsight.tracer.isolation import code_origins, file_reads

Version = int
"""Identifies a text: equal texts have equal versions, ignoring line ends and encoding."""


Compile = Callable[[str | bytes, str], CodeType]
"""Returns the code of a text of the file at a path."""


class Texts:
    """Contents of files: the editor's text if a file is open, else that on disk."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._on_disk: dict[str, tuple[tuple[int, int, int], Version]] = {}

    def put(self, path: str, text: str | None) -> None:
        """Set the editor's text of a file, or remove it with `None`."""
        if text is None:
            self._open.pop(self.real(path), None)
        else:
            self._open[self.real(path)] = text.removeprefix("\ufeff")

    def unsaved(self, path: str) -> str | None:
        """Return the editor's text of a file, if it is open."""
        return self._open.get(self.real(path))

    def current(self, path: str) -> str:
        """Return the text of a file that an import would get now; empty if there is none."""
        text = self.unsaved(path)
        if text is not None:
            return text
        try:
            return decode_source(reading.data(path))
        except (OSError, SyntaxError, UnicodeDecodeError):
            return ""

    def version(self, path: str) -> Version | None:
        """Return the version of the text that an import would get now; `None` without a file."""
        text = self.unsaved(path)
        if text is not None:
            return hash(_with_plain_line_ends(text))
        try:
            status = os.stat(path)  # noqa: PTH116 - for every module at every request
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            cached = self._on_disk.get(path)
            if cached is None or cached[0] != stamp:
                data = reading.data(path)
                cached = self._on_disk[path] = (stamp, _version_of_bytes(data))
        except OSError:
            return None
        return cached[1]

    def real(self, path: str) -> str:
        """Return the path without links, so that paths of editor and import system match."""
        real = self._real.get(path)
        if real is None:
            real = self._real[path] = os.path.realpath(path)
        return real


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _version_of_bytes(data: bytes) -> Version:
    try:
        return hash(_with_plain_line_ends(decode_source(data)).removeprefix("\ufeff"))
    except (SyntaxError, UnicodeDecodeError):  # a wrong encoding; importing raises an error
        return hash(data)


class Finder(MetaPathFinder):
    """Gives a project's modules a loader with the editor's texts.

    `is_project` decides which files are the project's.
    """

    def __init__(
        self,
        texts: Texts,
        is_project: Callable[[str], bool],
        execute: Callable[[Loader, ModuleType], None],
        compile: Compile,
    ) -> None:
        self.texts = texts
        self._is_project = is_project
        self._execute = execute
        self._compile = compile

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with our loader for a project's module."""
        spec = self._found_by_others(name, path, target) or self._not_on_disk(name, path)
        if (
            spec is not None
            and type(spec.loader) is SourceFileLoader
            and spec.origin is not None
            and self._is_project(spec.origin)
        ):
            spec.loader = Loader(name, spec.origin, self.texts, self._execute, self._compile)
        if spec is None and code_origins.asked_by_user(("importlib",)):
            self._note_missing(name, path)
        return spec

    def _note_missing(self, name: str, path: Sequence[str] | None) -> None:
        """Record the paths of a missing module of the project, as it may be created there."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            base = Path(folder, last)
            if self._is_project(str(base)):
                file_reads.missing((f"{base}.py", str(base / "__init__.py"), str(base)))

    def _found_by_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None

    def _not_on_disk(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of a file that exists only in the editor."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (str(Path(folder, last, "__init__.py")), str(Path(folder, f"{last}.py"))):
                if self.texts.unsaved(file) is not None:
                    return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))
        return None


class Loader(SourceFileLoader):
    """Loads a project's module from the editor's text, else from disk."""

    def __init__(
        self,
        name: str,
        path: str,
        texts: Texts,
        execute: Callable[[Loader, ModuleType], None],
        compile: Compile,
    ) -> None:
        super().__init__(name, path)
        self._texts = texts
        self._execute = execute
        self._compile = compile

    def get_code(self, fullname: str) -> CodeType | None:
        text = self._texts.unsaved(self.path)
        return self._compile(text if text is not None else self.get_data(self.path), self.path)

    def get_source(self, fullname: str) -> str | None:
        text = self._texts.unsaved(self.path)
        return text if text is not None else super().get_source(fullname)

    def exec_module(self, module: ModuleType) -> None:
        self._execute(self, module)

    def run(self, module: ModuleType) -> None:
        """Execute the module's code, like `exec_module` of a plain loader."""
        super().exec_module(module)
