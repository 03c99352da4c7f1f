"""Import files with the editor's text, by a finder that is first on `sys.meta_path`.

It serves only a project's modules: from the editor if a file is open with unsaved changes, else
from disk.
All other modules are found as if this finder did not exist.
It neither reads nor writes bytecode: functions report their calls (`ImportedFunctions`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from jaxsight.files.texts import Texts, Version
from jaxsight.tracer.isolation import code_origins, file_reads

Compile = Callable[[str | bytes, str], CodeType]
"""Returns the code of a text of the file at a path."""


class Finder(MetaPathFinder):
    """Gives a project's modules a loader with the editor's texts.

    `is_project` decides which files are the project's. `made_of` is called with the version of each
    text that is executed.
    """

    def __init__(
        self,
        texts: Texts,
        is_project: Callable[[str], bool],
        execute: Callable[[Loader, ModuleType], None],
        made_of: Callable[[str, Version], None],
        compile: Compile,
    ) -> None:
        self.texts = texts
        self._is_project = is_project
        self._execute = execute
        self._made_of = made_of
        self._compile = compile

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with our loader for a project's module."""
        spec = found_by_others(self, name, path, target) or self._not_on_disk(name, path)
        if (
            spec is not None
            and type(spec.loader) is SourceFileLoader
            and spec.origin is not None
            and self._is_project(spec.origin)
        ):
            spec.loader = Loader(
                name, spec.origin, self.texts, self._execute, self._made_of, self._compile
            )
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

    def _not_on_disk(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of a file that exists only in the editor."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (str(Path(folder, last, "__init__.py")), str(Path(folder, f"{last}.py"))):
                if self.texts.unsaved(file) is not None:
                    return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))
        return None


def found_by_others(
    finder: MetaPathFinder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec of a module as it is found without `finder`."""
    for other in list(sys.meta_path):
        find: Any = getattr(other, "find_spec", None) if other is not finder else None
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


class Loader(SourceFileLoader):
    """Loads a project's module from the editor's text, else from disk."""

    def __init__(
        self,
        name: str,
        path: str,
        texts: Texts,
        execute: Callable[[Loader, ModuleType], None],
        made_of: Callable[[str, Version], None],
        compile: Compile,
    ) -> None:
        super().__init__(name, path)
        self._texts = texts
        self._made_of = made_of
        self._execute = execute
        self._compile = compile

    def get_code(self, fullname: str) -> CodeType | None:
        content, version = self._texts.source(self.path)
        self._made_of(self.path, version)
        return self._compile(content, self.path)

    def get_source(self, fullname: str) -> str | None:
        text = self._texts.unsaved(self.path)
        return text if text is not None else super().get_source(fullname)

    def exec_module(self, module: ModuleType) -> None:
        self._execute(self, module)

    def run(self, module: ModuleType) -> None:
        """Execute the module's code, like `exec_module` of a plain loader."""
        super().exec_module(module)
