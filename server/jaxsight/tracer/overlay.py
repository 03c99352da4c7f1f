"""The text of files as the editor has them, for imports: a finder that stands first on
`sys.meta_path`.

It serves a project's modules only: from the editor where a file is open with other text than on
disk, else from disk. All other modules are found as if it were not there. It never writes bytecode
of a text that is not on disk.
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

from jaxsight import reading
from jaxsight.tracer import origins, reads

Version = int
"""Names a text: equal texts, equal versions. Line ends and encoding do not count."""


class Texts:
    """What files contain: the editor's text where a file is open, else the disk's."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._on_disk: dict[str, tuple[tuple[int, int, int], Version]] = {}

    def put(self, path: str, text: str | None) -> None:
        """Take the editor's text of a file; `None` when it was closed."""
        if text is None:
            self._open.pop(self.real(path), None)
        else:
            self._open[self.real(path)] = text.removeprefix("\ufeff")

    def unsaved(self, path: str) -> str | None:
        """The editor's text of a file."""
        return self._open.get(self.real(path))

    def version(self, path: str) -> Version | None:
        """Names the text that an import would see now; `None` when there is none."""
        text = self.unsaved(path)
        if text is not None:
            return hash(_with_plain_line_ends(text))
        try:
            status = os.stat(path)  # noqa: PTH116 - for every module at every request
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._on_disk.get(path)
            if known is None or known[0] != stamp:
                data = reading.data(path)
                known = self._on_disk[path] = (stamp, _version_of_bytes(data))
        except OSError:
            return None
        return known[1]

    def real(self, path: str) -> str:
        """The path without links, so that the editor's and the import system's names of a file
        meet.
        """
        found = self._real.get(path)
        if found is None:
            found = self._real[path] = os.path.realpath(path)
        return found


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _version_of_bytes(data: bytes) -> Version:
    try:
        return hash(_with_plain_line_ends(decode_source(data)).removeprefix("\ufeff"))
    except (SyntaxError, UnicodeDecodeError):  # a wrong coding cookie; importing will say so
        return hash(data)


class Finder(MetaPathFinder):
    """Gives a project's modules a loader that knows of the editor; `is_project` says which files
    those are.
    """

    def __init__(
        self,
        texts: Texts,
        is_project: Callable[[str], bool],
        execute: Callable[[Loader, ModuleType], None],
        is_stale: Callable[[str], bool],
    ) -> None:
        self.texts = texts
        self._is_project = is_project
        self._execute = execute
        self._is_stale = is_stale

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the other finders find it, with our loader for a project's module."""
        spec = self._found_by_others(name, path, target) or self._not_on_disk(name, path)
        if (
            spec is not None
            and type(spec.loader) is SourceFileLoader
            and spec.origin is not None
            and self._is_project(spec.origin)
        ):
            spec.loader = Loader(name, spec.origin, self.texts, self._execute, self._is_stale)
        if spec is None and origins.asked_by_user(("importlib",)):
            self._note_missing(name, path)
        return spec

    def _note_missing(self, name: str, path: Sequence[str] | None) -> None:
        """Where a module of the project would be: it may appear there."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            base = Path(folder, last)
            if self._is_project(str(base)):
                reads.missing((f"{base}.py", str(base / "__init__.py"), str(base)))

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
        """A file that exists in the editor alone."""
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
        is_stale: Callable[[str], bool],
    ) -> None:
        super().__init__(name, path)
        self._texts = texts
        self._execute = execute
        self._is_stale = is_stale

    def get_code(self, fullname: str) -> CodeType | None:
        text = self._texts.unsaved(self.path)
        if text is not None:
            return self.source_to_code(text, self.path)
        if self._is_stale(self.path):
            # Bytecode on disk is told apart by seconds and size alone, too coarse for a file being
            # edited.
            return self.source_to_code(self.get_data(self.path), self.path)
        return super().get_code(fullname)

    def get_source(self, fullname: str) -> str | None:
        text = self._texts.unsaved(self.path)
        return text if text is not None else super().get_source(fullname)

    def exec_module(self, module: ModuleType) -> None:
        self._execute(self, module)

    def run(self, module: ModuleType) -> None:
        """Execute the module's code, as `exec_module` of a plain loader does."""
        super().exec_module(module)
