"""The modules of the project that this process has imported, and which of them are outdated.

When a file changes, its module and its importers are removed from `sys.modules`, so that the next
import runs the new text.
Modules of installed packages are never unloaded.
The project's modules are imported with the editor's text, by a finder that is first on
`sys.meta_path`: from the editor if a file is open with unsaved changes, else from disk. All other
modules are found as if it did not exist.
It neither reads nor writes bytecode: statements that are refused an effect do not end a module.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path, PurePath
from types import CodeType, ModuleType

from jaxsight.files.texts import MISSING, Texts, Version
from jaxsight.tracer.importing import module_statements
from jaxsight.tracer.importing.finding import init_file, lies_in, prefixes, spec_without
from jaxsight.tracer.isolation import code_origins, file_reads
from jaxsight.tracer.isolation.object_snapshot import ObjectSnapshot
from jaxsight.tracer.isolation.process_state import Effects

Edges = dict[str, int]
"""Modules of the project by name, each with the serial number of its import."""


@dataclass(slots=True)
class LoadedModule:
    """A module of the project that was imported.

    `serial` distinguishes this import from a later one of the same name.
    """

    path: str
    serial: int
    versions: dict[str, Version]
    """The files whose change invalidates it, usually only its own, as it was executed."""
    imports: Edges = field(default_factory=dict)
    jax: bool = False
    """Whether importing it imports JAX."""
    snapshot: ObjectSnapshot | None = None
    """Its contents after the import; `None` while it runs, and once they are known to differ."""
    reads: file_reads.Reads = field(default_factory=file_reads.Reads)
    """Files that it read during the import."""
    touches_others: bool = False
    """Whether its import may depend on those before it, and others on it."""
    error: str = ""
    """Why an empty package stands in for it."""
    missing: set[str] = field(default_factory=set)
    """Modules that placeholders stand in for; once one exists, the module is outdated."""
    refused: dict[int, str] = field(default_factory=dict)
    """What statements would have done outside that were not run for it, by their lines."""


@dataclass(slots=True)
class RunningFile:
    """The traced file, and the full import that other modules may need of it."""

    module: ModuleType
    serial: int
    full: ModuleType | None
    installed: bool = False
    """Whether the file is part of an installed package, whose other modules import it fully."""
    full_in_place: bool = False
    begin: Callable[[], None] | None = None
    """Executes the file's chunks, on the first import of it."""
    complete: bool = False
    """Whether the slice has all statements of the module."""

    @property
    def name(self) -> str:
        return self.module.__name__


class Loader(SourceFileLoader):
    """Loads a project's module from the editor's text, else from disk."""

    def __init__(self, name: str, path: str, project: ProjectModules) -> None:
        super().__init__(name, path)
        self._project = project

    def get_code(self, fullname: str) -> CodeType | None:
        # Never bytecode, which does not tell apart texts of the same size and second.
        content, self._project.attempted[self.path] = self._project.texts.source(self.path)
        return module_statements.compiled(content, self.path)

    def get_source(self, fullname: str) -> str | None:
        text = self._project.texts.unsaved(self.path)
        return text if text is not None else super().get_source(fullname)

    def exec_module(self, module: ModuleType) -> None:
        self._project.execute(self, module)


class Finder(MetaPathFinder):
    """Gives a project's modules a loader with the editor's texts."""

    def __init__(self, project: ProjectModules) -> None:
        self._project = project

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with our loader for a project's module."""
        spec = spec_without(self, name, path, target) or self._not_on_disk(name, path)
        if (
            spec is not None
            # Not `isinstance`: the loader of an import hook does more than run the text.
            and type(spec.loader) is SourceFileLoader
            and spec.origin is not None
            and self._project.is_project(spec.origin)
        ):
            spec.loader = Loader(name, spec.origin, self._project)
        # Libraries try modules that need not exist.
        if spec is None and code_origins.called_by_user(("importlib",)):
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


class ProjectModules:
    """The project's modules in this process."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.loaded: dict[str, LoadedModule] = {}
        self.attempted: dict[str, Version] = {}
        """Files of the project whose import was attempted since the request began."""
        self.importing: list[str] = []
        """Modules whose import has begun and not ended, outermost first."""
        self.effects: dict[str, Effects] = {}
        """The effects of importing a module, by its name."""
        self.running: RunningFile | None = None
        self.announce: Callable[[str, Version], None] = lambda path, version: None
        """Called before a file is executed, with its version."""
        self._roots: tuple[str, ...] = ()
        self._failed_one_touches = False
        """Whether an import that raised an error may have touched modules that are loaded."""
        self._serials = itertools.count(1)
        module_statements.install(self._note_refused)
        self._finder = Finder(self)
        sys.meta_path.insert(0, self._finder)

    def begin(self, module: ModuleType, file: str, roots: Sequence[str]) -> RunningFile:
        """Make `module` the running file, and unload modules that have changed.

        `roots` are the folders of the project.
        """
        moved = self._roots != tuple(roots)
        self._roots = tuple(roots)
        self.attempted = {}
        # Negative, so that it is no import's; another one for each text of the file.
        serial = -1 - abs(hash((id(module), self.texts.version(file))))
        running = RunningFile(module, serial, None, installed=not self._lies_in_roots(file))
        self.running = running
        elsewhere = {
            name.partition(".")[0]
            for name, loaded in self.loaded.items()
            if moved and self._is_elsewhere(name, loaded.path)
        }
        stale = {
            name
            for name, loaded in self.loaded.items()
            if not self.texts.are_current(loaded.versions)
            or name.partition(".")[0] in elsewhere
            or not self.texts.are_current(loaded.reads.unwritten())
            or any(map(self.can_find, loaded.missing))
        }
        if stale or moved:
            importlib.invalidate_caches()
        self._unload(*stale)
        for name in stale:
            self._leave_folders(name)
        self._unload_importers(running.name)
        return running

    def end(self) -> None:
        """End the running file."""
        self.running = None
        self.importing.clear()

    def is_project(self, path: str) -> bool:
        """Return whether a file is the project's.

        It is if it is under a root and not installed there, or edited in the editor.
        """
        return self._lies_in_roots(path) or self.texts.differs_from_disk(path)

    def _lies_in_roots(self, path: str) -> bool:
        real = self.texts.real
        return any(lies_in(real(path), real(root)) for root in self._roots)

    def files_of(self, modules: Iterable[str]) -> dict[str, Version]:
        """Return the files of these modules and of all their imports, as they were executed."""
        files: dict[str, Version] = {}
        for loaded in map(self.loaded.__getitem__, self._with_imports(modules)):
            files |= loaded.reads.unwritten()
            files |= loaded.versions
        return files

    def _with_imports(self, modules: Iterable[str]) -> set[str]:
        reached: set[str] = set()
        todo = list(modules)
        while todo:
            name = todo.pop()
            loaded = self.loaded.get(name)
            if name not in reached and loaded is not None:
                reached.add(name)
                todo += loaded.imports
        return reached

    def failed(self) -> dict[str, Version]:
        """Return the files whose import was attempted since the request began, and failed.

        Whoever caught the error depends on them, but has not imported them.
        """
        loaded = {loaded.path for loaded in self.loaded.values()} if self.attempted else set()
        return {path: text for path, text in self.attempted.items() if path not in loaded}

    def are_current(self, edges: Mapping[str, int]) -> bool:
        """Return whether these modules are still those of the recorded imports."""
        return all(self._is_current(name, serial) for name, serial in edges.items())

    def namespaces(self) -> list[dict[str, object]]:
        """Return the namespaces of the project's modules."""
        return [vars(sys.modules[name]) for name in self.loaded if name in sys.modules]

    def refused(self, edges: Edges) -> Iterator[str]:
        """Yield the statements that were not run of modules that are imported, as clauses."""
        for name in sorted(self._with_imports(edges)):
            for line, what in self.loaded[name].refused.items():
                yield f"imports `{name}`, whose line {line} did not run: it would {what}"

    def _note_refused(self, module: str, line: int, effect: str) -> None:
        if module in self.loaded:
            self.loaded[module].refused[line] = effect

    def can_find(self, missing: str) -> bool:
        """Return whether a module or file that was missing exists now."""
        if PurePath(missing).is_absolute():
            return os.path.exists(missing)  # noqa: PTH110 - called often
        *packages, _ = prefixes(missing)
        if missing in sys.modules or any(part not in sys.modules for part in packages):
            return missing in sys.modules
        path = getattr(sys.modules[packages[-1]], "__path__", None) if packages else None
        try:
            return self._finder.find_spec(missing, path) is not None
        except (ImportError, ValueError):
            return False

    def put_empty_package(self, package: str, folder: str, error: str) -> LoadedModule:
        """Replace a package that cannot be imported by an empty one that contains its modules."""
        module = ModuleType(package)
        module.__path__ = [folder]
        module.__package__ = package
        sys.modules[package] = module
        path = init_file(folder)
        versions = {path: self.texts.version(path), **self.attempted}
        loaded = LoadedModule(path, next(self._serials), versions, error=error)
        self.loaded[package] = loaded
        return loaded

    def note_changes(self) -> None:
        """Remember which modules have changed since their import, before changes are undone.

        What a module has changed in others is undone together with what a file has changed, but it
        stays loaded. So another file that imports them cannot share them.
        """
        newest = max((loaded.serial for loaded in self.loaded.values()), default=0)
        for loaded in self.loaded.values():
            snapshot = loaded.snapshot
            if snapshot is not None and loaded.serial < newest and not snapshot.is_current():
                loaded.snapshot = None

    def renew(self) -> None:
        """Unload the project's modules that have changed since their import, and their importers.

        This includes modules that would not be found now, before the file's statements have changed
        the path, and all of them if one may touch others.
        """
        touching = (loaded.touches_others for loaded in self.loaded.values())
        if self._failed_one_touches or any(touching):
            self.unload_all()
        changed = {
            name
            for name, loaded in self.loaded.items()
            if loaded.snapshot is None
            or not loaded.snapshot.is_current()
            or self._is_elsewhere(name, loaded.path)
        }
        self._unload(*changed)
        self._unload_importers("")
        importlib.invalidate_caches()

    def unload_all(self) -> None:
        """Unload the project's modules."""
        self._failed_one_touches = False
        self._unload(*self.loaded)

    def _is_current(self, name: str, serial: int) -> bool:
        running = self.running
        if running is not None and name == running.name and serial == running.serial:
            return True
        loaded = self.loaded.get(name)
        return loaded is not None and loaded.serial == serial

    def _unload_importers(self, own: str) -> None:
        """Unload importers of modules that were unloaded.

        Packages around the file `own` may keep the names that they imported from it.
        """
        while fallen := [
            name
            for name, loaded in self.loaded.items()
            if not all(
                # Do not import a package that re-exports names of the edited file again on every
                # key press.
                self._is_current(imported, serial)
                or (imported == own and own.startswith(f"{name}."))
                for imported, serial in loaded.imports.items()
            )
        ]:
            self._unload(*fallen)

    def _unload(self, *names: str) -> None:
        for name in names:
            self._unload_one(name)

    def _unload_one(self, name: str) -> None:
        del self.loaded[name]
        self.effects.pop(name, None)
        module = sys.modules.get(name)
        if self.running is not None and module is self.running.module:
            # The running file stands in for what was imported under its name.
            module, self.running.full = self.running.full, None
        else:
            sys.modules.pop(name, None)
        # Folders without `__init__.py` compute their path from the package around them. The running
        # file does not have a `__file__` either before it begins.
        running = self.running.module if self.running is not None else None
        below = [(each, of) for each, of in sys.modules.items() if each.startswith(f"{name}.")]
        for each, of in below:
            if of is not running and vars(of).get("__file__") is None:
                del sys.modules[each]
        parent, _, last = name.rpartition(".")
        names = vars(sys.modules[parent]) if parent in sys.modules else {}
        # `from package import name` takes an attribute before it imports anything.
        if module is not None and names.get(last) is module:
            del names[last]

    def _leave_folders(self, name: str) -> None:
        """Unload folders around a module that were imported as packages, and are not found now."""
        folders = None
        for part in prefixes(name)[:-1]:
            module = sys.modules.get(part)
            if module is None:
                return
            if part not in self.loaded and vars(module).get("__file__") is None:
                spec = self._finder.find_spec(part, folders)
                if spec is None or spec.origin is not None:
                    del sys.modules[part]
                    self._unload(*(each for each in self.loaded if each.startswith(f"{part}.")))
                    return
            folders = getattr(module, "__path__", None)

    def _is_elsewhere(self, name: str, path: str) -> bool:
        """Return whether the name of a module now leads to another file.

        If its package has a module, this is decided for the package.
        """
        names = prefixes(name)
        if any(package in self.loaded for package in names[:-1]):
            return False
        # A package without a module is a folder, which is searched for at each import.
        # Part by part: `importlib.util.find_spec` would import the packages around it.
        spec, folders = None, None
        for part in names:
            try:
                spec = self._finder.find_spec(part, folders)
            except KeyError:
                # Python finds a folder without `__init__.py` through the package around it, which
                # is not loaded (`_NamespacePath` of importlib).
                return True
            if spec is None:
                sys.modules.pop(part, None)
                return True
            folders = spec.submodule_search_locations
        return spec is None or spec.origin != path

    def execute(self, loader: Loader, module: ModuleType) -> None:
        name, path = module.__name__, loader.path
        loaded = LoadedModule(path, next(self._serials), {})
        self.attempted[path] = self.texts.version(path)
        self.announce(path, self.attempted[path])
        self.loaded[name] = loaded
        absent = [file for file in self._before(name, path) if self.texts.is_current(file, MISSING)]
        for file in absent:
            loaded.reads.note(file, MISSING)
        for child in self.loaded:
            # Modules of the package that stay loaded when it is reloaded.
            around, _, last = child.rpartition(".")
            if around == name and child in sys.modules:
                setattr(module, last, sys.modules[child])
        self.importing.append(name)
        try:
            with file_reads.recording(loaded.reads):
                SourceFileLoader.exec_module(loader, module)
            loaded.versions |= {path: self.attempted[path]} | self.failed()
        except BaseException:
            # Unless it was unloaded, or imported again, while it ran.
            if self.loaded.get(name) is loaded:
                del self.loaded[name]
            file_reads.missing(absent)
            self._failed_one_touches |= self._touches_others(path, module)
            raise
        finally:
            if name in self.importing:
                self.importing.remove(name)
        loaded.snapshot = ObjectSnapshot([vars(module)], {name})
        loaded.touches_others = self._touches_others(path, module)

    def _before(self, name: str, path: str) -> Iterator[str]:
        """Yield where the project may get a module that is found before the one of this path."""
        parent, _, last = name.rpartition(".")
        around = sys.modules.get(parent)
        if around is not None and vars(around).get("__file__") is None:
            yield from self._before(parent, "")  # a folder without `__init__.py` comes last
        for folder in sys.path if around is None else getattr(around, "__path__", ()):
            base = str(PurePath(folder, last))
            for file in (init_file(base), f"{base}.py") if self.is_project(base) else ():
                if file == path:
                    return
                yield file

    def _touches_others(self, path: str, module: ModuleType) -> bool:
        try:
            text, _ = self.texts.source(path)
        except OSError:  # it has been removed
            return True
        return module_statements.touches_others(text, module)
