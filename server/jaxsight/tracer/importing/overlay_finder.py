"""Import files with the editor's text, by a finder that is first on `sys.meta_path`.

It serves only a project's modules: from the editor if a file is open with unsaved changes, else
from disk.
All other modules are found as if this finder did not exist.
It neither reads nor writes bytecode: statements that are refused an effect do not end a module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol

from jaxsight.files.texts import Texts, Version
from jaxsight.tracer.isolation import code_origins, file_reads


class ImportingProject(Protocol):
    """The modules of a project, as they are imported here."""

    texts: Texts
    attempted: dict[str, Version]
    """Gets the version of each text that is executed."""

    def is_project(self, path: str) -> bool: ...

    def execute(self, loader: Loader, module: ModuleType) -> None:
        """Execute a module by `Loader.run`."""

    def compiled(self, text: str | bytes, path: str) -> CodeType: ...


class Finder(MetaPathFinder):
    """Gives a project's modules a loader with the editor's texts."""

    def __init__(self, project: ImportingProject) -> None:
        self._project = project

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with our loader for a project's module."""
        spec = found_by_others(self, name, path, target) or self._not_on_disk(name, path)
        if (
            spec is not None
            # Not `isinstance`: the loader of an import hook does more than run the text.
            and type(spec.loader) is SourceFileLoader
            and spec.origin is not None
            and self._project.is_project(spec.origin)
        ):
            spec.loader = Loader(name, spec.origin, self._project)
        # Libraries try modules that need not exist.
        if spec is None and code_origins.asked_by_user(("importlib",)):
            # A missing module of the project may be created in one of these places.
            last = name.rpartition(".")[2]
            for folder in sys.path if path is None else path:
                base = Path(folder, last)
                if self._project.is_project(str(base)):
                    file_reads.missing((f"{base}.py", str(base / "__init__.py"), str(base)))
        return spec

    def _not_on_disk(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of a file that exists only in the editor."""
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file in (str(Path(folder, last, "__init__.py")), str(Path(folder, f"{last}.py"))):
                if self._project.texts.unsaved(file) is not None:
                    return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))
        return None


def found_by_others(
    finder: MetaPathFinder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec of a module as it is found without `finder`."""
    # A copy: `AfterImport` removes itself when it is asked.
    for other in list(sys.meta_path):
        find: Any = getattr(other, "find_spec", None) if other is not finder else None
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


class Loader(SourceFileLoader):
    """Loads a project's module from the editor's text, else from disk."""

    def __init__(self, name: str, path: str, project: ImportingProject) -> None:
        super().__init__(name, path)
        self._project = project

    def get_code(self, fullname: str) -> CodeType | None:
        # Never bytecode, which does not tell apart texts of the same size and second.
        content, self._project.attempted[self.path] = self._project.texts.source(self.path)
        return self._project.compiled(content, self.path)

    def get_source(self, fullname: str) -> str | None:
        text = self._project.texts.unsaved(self.path)
        return text if text is not None else super().get_source(fullname)

    def exec_module(self, module: ModuleType) -> None:
        self._project.execute(self, module)

    def run(self, module: ModuleType) -> None:
        """Execute the module's code, like `exec_module` of a plain loader."""
        super().exec_module(module)
