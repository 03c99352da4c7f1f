"""Track loaded modules of the project: versions, importers, and effects of imports.

When a file changes, its module and its importers are removed from `sys.modules`, so that the next
import runs the new text.
The traced file runs under its own name without being imported; names that other modules need from
it and that its slice does not define come from a full import, as they would without jaxsight.
Modules of installed packages are never unloaded.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.util
import itertools
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import ModuleType
from typing import Any

from jaxsight.tracer.isolation import origins, reads
from jaxsight.tracer.isolation import process_effects as effects
from jaxsight.tracer.isolation.footprint import Footprint
from jaxsight.tracer.isolation.overlay import Finder, Loader, Texts, Version
from jaxsight.tracer.isolation.process_effects import Effects
from jaxsight.tracer.observation.recorder import CancelledByServer

logger = logging.getLogger(__name__)

_import = builtins.__import__
_import_module = importlib.import_module

Edges = dict[str, int]
"""Modules of the project by name, each with the serial number of its import."""


@dataclass(slots=True)
class Loaded:
    """A module of the project that was imported.

    `serial` distinguishes this import from a later one of the same name.
    """

    path: str
    serial: int
    versions: dict[str, Version | None]
    """The files whose change invalidates it, usually only its own."""
    imports: Edges = field(default_factory=dict)
    jax: bool = False
    """Whether importing it imports JAX."""
    footprint: Footprint | None = None
    """Its contents after the import."""
    reads: reads.Reads = field(default_factory=reads.Reads)
    """Files that it read during the import."""


@dataclass(slots=True)
class _Running:
    """The traced file, and the full import that other modules may need of it."""

    module: ModuleType
    serial: int
    full: ModuleType | None
    installed: bool = False
    """Whether the file is part of an installed package, whose other modules import it fully."""
    full_in_place: bool = False
    begin: Callable[[], None] | None = None
    """Executes the file's chunks, on the first import of it."""
    whole: bool = False
    """Whether the slice has all statements of the module."""


class WantsWhole(CancelledByServer):
    """Aborts a request whose slice lacks a name that another module imports from the file."""


class Imports:
    """The project's modules in this process."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.loaded: dict[str, Loaded] = {}
        self.files: set[str] = set()
        """Files of the project whose import was attempted since the request began."""
        self.used: dict[str, Edges] = {}
        """Imports of the running file's chunks, by the file names that these are compiled under."""
        self.applied: set[str] = set()
        """Modules whose effects have been applied for the running file."""
        self.jax = False
        """Whether the running file has imported JAX."""
        self.wanted = ""
        """Which module needs more of the running file than its slice.

        This repeats the message of `WantsWhole`, as user code may have caught that exception.
        """
        self.arrived: Callable[[], None] = lambda: None
        """Called when code of the project has imported a module that was not loaded."""
        self._roots: tuple[str, ...] = ()
        self._running: _Running | None = None
        self._importing: list[str] = []
        self._edited: set[str] = set()
        self._effects: dict[str, Effects] = {}
        self._serials = itertools.count(1)
        edited = self._edited.__contains__
        self._finder = Finder(self.texts, self._is_project, self._execute, edited)
        sys.meta_path.insert(0, self._finder)

    def files_of(self, modules: Iterable[str]) -> set[str]:
        """Return the files of these modules and of all their imports."""
        seen: set[str] = set()
        todo = list(modules)
        while todo:
            name = todo.pop()
            loaded = self.loaded.get(name)
            if name not in seen and loaded is not None:
                seen.add(name)
                todo += loaded.imports
        return {
            path
            for loaded in map(self.loaded.__getitem__, seen)
            for path in (*loaded.versions, *loaded.reads)
        }

    def current(self, edges: Mapping[str, int]) -> bool:
        """Return whether these modules are still those of the recorded imports."""
        return all(self._holds(name, serial) for name, serial in edges.items())

    @contextlib.contextmanager
    def running(self, module: ModuleType, file: str, roots: Sequence[str]) -> Iterator[None]:
        """Follow imports while `module` is the traced file.

        `roots` are the folders of the project.
        """
        name = module.__name__
        moved = self._roots != tuple(roots)
        self._roots = tuple(roots)
        self.files, self.used, self.applied, self.jax, self.wanted = set(), {}, set(), False, ""
        serial = -1 - abs(hash((id(module), self.texts.version(file))))
        self._running = _Running(module, serial, None, installed=not self._is_project(file))
        self._unload_stale(moved)
        self._running.full = sys.modules.get(name)
        parent, _, last = name.rpartition(".")
        around = vars(sys.modules[parent]) if parent in sys.modules else {}
        as_attribute = around.get(last)
        sys.modules[name] = module
        builtins.__import__ = self._follow
        importlib.import_module = self._follow_import_module
        try:
            yield
        finally:
            builtins.__import__ = _import
            importlib.import_module = _import_module
            full, self._running = self._running.full, None
            self._importing.clear()
            sys.modules.pop(name, None)
            if full is not None:
                sys.modules[name] = full
            around = vars(sys.modules[parent]) if parent in sys.modules else {}
            if around.get(last) is module:
                del around[last]
                if (standing := full or as_attribute) is not None:
                    around[last] = standing

    @contextlib.contextmanager
    def importing(self, begin: Callable[[], None], whole: bool) -> Iterator[None]:
        """Import the running file; `begin` executes it as soon as it is needed."""
        running = self._running
        assert running is not None
        running.begin, running.whole = begin, whole
        try:
            yield
        finally:
            running.begin = None

    def namespaces(self) -> list[dict[str, Any]]:
        """Return the namespaces of the project's modules."""
        return [vars(sys.modules[name]) for name in self.loaded if name in sys.modules]

    def can_find(self, missing: str) -> bool:
        """Return whether a module or file that was missing exists now."""
        if PurePath(missing).is_absolute():
            return os.path.exists(missing)  # noqa: PTH110 - called often
        if missing in sys.modules or any(
            part not in sys.modules for part in _prefixes(missing)[:-1]
        ):
            return missing in sys.modules
        parent = missing.rpartition(".")[0]
        path = getattr(sys.modules[parent], "__path__", None) if parent else None
        try:
            return self._finder.find_spec(missing, path) is not None
        except (ImportError, ValueError):
            return False

    def renew(self) -> None:
        """Unload the project's modules that have changed since their import, and their importers.

        This includes modules that would not be found now, before the file's statements have changed
        the path.
        """
        changed = {
            name
            for name, loaded in self.loaded.items()
            if loaded.footprint is None
            or not loaded.footprint.holds()
            or self._is_elsewhere(name, loaded.path)
        }
        for name in changed:
            self._unload(name, edited=False)
        self._unload_importers("")
        importlib.invalidate_caches()

    def import_package(self, package: str, folder: str, used: Edges) -> None:
        """Import the package around the running file.

        If that fails, it is replaced by an empty package that contains its modules: the file can
        still be served, and reports the names that it misses.
        """
        path = str(PurePath(folder, "__init__.py"))
        # A project's package gets the slice of the running file, and more if it needs that. An
        # installed one is run by Python itself, which would get an incomplete module.
        whole = package not in sys.modules and not self._is_project(path)
        try:
            with self._full_in_place() if whole else contextlib.nullcontext():
                self._import(used, (package, {}, None, ("__name__",), 0), package, [package])
        except CancelledByServer:
            raise
        except BaseException as error:  # noqa: BLE001 - user code; SystemExit too
            logger.warning("package %s could not be imported: %r", package, error)
            bare = ModuleType(package)
            bare.__path__ = [folder]
            bare.__package__ = package
            sys.modules[package] = bare
            versions = {each: self.texts.version(each) for each in (path, *self.files)}
            loaded = self.loaded[package] = Loaded(path, next(self._serials), versions)
            used[package] = loaded.serial

    def _is_project(self, path: str) -> bool:
        """Return whether a file is the project's.

        It is if it is open in the editor, or under a root and not installed there.
        """
        real = self.texts.real
        return self.texts.unsaved(path) is not None or any(
            _lies_in(real(path), real(root)) for root in self._roots
        )

    def _holds(self, name: str, serial: int) -> bool:
        running = self._running
        if running is not None and name == running.module.__name__ and serial == running.serial:
            return True
        loaded = self.loaded.get(name)
        return loaded is not None and loaded.serial == serial

    def _unload_stale(self, moved: bool) -> None:
        """Unload changed modules and their importers.

        `moved`: names may now be found elsewhere.
        """
        own = self._running.module.__name__ if self._running is not None else ""
        versions = {path for loaded in self.loaded.values() for path in loaded.versions}
        now = {path: self.texts.version(path) for path in versions}
        elsewhere = {
            name.partition(".")[0]
            for name, loaded in self.loaded.items()
            if moved and self._is_elsewhere(name, loaded.path)
        }
        stale = {
            name
            for name, loaded in self.loaded.items()
            if any(now[path] != version for path, version in loaded.versions.items())
            or name.partition(".")[0] in elsewhere
            or not loaded.reads.current()
        }
        if stale or moved:
            importlib.invalidate_caches()
        for name in stale:
            self._unload(name)
        self._unload_importers(own)

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
                self._holds(each, serial) or (each == own and own.startswith(f"{name}."))
                for each, serial in loaded.imports.items()
            )
        ]:
            for name in fallen:
                self._unload(name)

    def _unload(self, name: str, *, edited: bool = True) -> None:
        loaded = self.loaded.pop(name)
        if edited:
            self._edited.update(loaded.versions)
        self._effects.pop(name, None)
        module = sys.modules.pop(name, None)
        # Folders without `__init__.py` compute their path from the package around them. The running
        # file does not have a `__file__` either before it begins.
        running = self._running.module if self._running is not None else None
        for below in [each for each in sys.modules if each.startswith(f"{name}.")]:
            module_below = sys.modules[below]
            if module_below is not running and vars(module_below).get("__file__") is None:
                del sys.modules[below]
        parent, _, last = name.rpartition(".")
        names = vars(sys.modules[parent]) if parent in sys.modules else {}
        if module is not None and names.get(last) is module:
            del names[last]

    def _is_elsewhere(self, name: str, path: str) -> bool:
        """Return whether the name of a module now leads to another file.

        If its package has a module, this is decided for the package.
        """
        packages = _prefixes(name)
        if any(each in self.loaded for each in packages[:-1]):
            return False
        # A package without a module is a folder, which is searched for at each import.
        spec, folders = None, None
        for each in packages:
            try:
                spec = self._finder.find_spec(each, folders)
            except KeyError:
                # Python finds a folder without `__init__.py` through the package around it, which
                # is not loaded (`_NamespacePath` of importlib).
                return True
            if spec is None:
                sys.modules.pop(each, None)
                return True
            folders = spec.submodule_search_locations
        return spec is None or spec.origin != path

    def _execute(self, loader: Loader, module: ModuleType) -> None:
        name, path = module.__name__, loader.path
        self.files.add(path)
        loaded = Loaded(path, next(self._serials), {path: self.texts.version(path)})
        self.loaded[name] = loaded
        for child in [each for each in self.loaded if each.rpartition(".")[0] == name]:
            # Modules of the package that stay loaded when it is reloaded.
            if child in sys.modules:
                setattr(module, child.rpartition(".")[2], sys.modules[child])
        self._importing.append(name)
        try:
            with reads.recording(loaded.reads):
                loader.run(module)
        except BaseException:
            if self.loaded.get(name) is loaded:
                del self.loaded[name]
            raise
        finally:
            if name in self._importing:
                self._importing.remove(name)
        loaded.footprint = Footprint([vars(module)], {name})

    def _follow(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Replace `__import__` while a file runs."""
        arguments = (name, globals, locals, fromlist, level)
        return self._followed(arguments, sys._getframe(1).f_code.co_filename)

    def _follow_import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Replace `importlib.import_module` while a file runs."""
        absolute = importlib.util.resolve_name(name, package)
        frame = sys._getframe(1)
        # With a `fromlist`, `__import__` returns the module itself and not its top-level package.
        arguments = (absolute, frame.f_globals, None, ("__name__",), 0)
        return self._followed(arguments, frame.f_code.co_filename)

    def _followed(self, arguments: Any, code_file: str) -> ModuleType:
        name, globals, _, fromlist, level = arguments
        importer = globals.get("__name__", "") if globals is not None else ""
        loaded = None
        running = self._running
        if "§" in code_file:
            edges = self.used.setdefault(code_file, {})
        elif (loaded := self.loaded.get(importer)) is not None:
            edges = loaded.imports
        elif running is not None and running.installed and not running.full_in_place:
            edges = {}
        else:
            return self._import_within(arguments)
        try:
            package = globals.get("__package__") if globals is not None else None
            absolute = importlib.util.resolve_name("." * level + name, package)
        except (ImportError, ValueError):
            return _import(*arguments)  # raises the proper error
        if fromlist:
            explicit = [absolute, *(f"{absolute}.{each}" for each in fromlist)]
        else:
            explicit = list(_prefixes(absolute))
        if loaded is None and "§" not in code_file:
            # Another installed module must not get the slice of the traced one.
            wanted = running is not None and running.module.__name__ in explicit
            with self._full_in_place() if wanted else contextlib.nullcontext():
                return self._import_within(arguments)
        jax, self.jax = self.jax, False
        try:
            if running is not None and running.module.__name__ in explicit:
                self._give_running(running)
                if self._wants_all(absolute, fromlist):
                    self.wanted = f"{importer} imports {running.module.__name__}"
                    raise WantsWhole(self.wanted)
            return self._import(edges, arguments, absolute, explicit)
        finally:
            if loaded is not None:
                loaded.jax |= self.jax
            self.jax |= jax

    def _give_running(self, running: _Running) -> None:
        """Execute the running file if a package around it is the first to import it."""
        if running.begin is None or running.full_in_place:
            return
        begin, running.begin = running.begin, None
        begin()
        parent, _, last = running.module.__name__.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], last, running.module)

    def _import(
        self, edges: Edges, arguments: Any, absolute: str, explicit: Sequence[str]
    ) -> ModuleType:
        """Import a module, record the edges, and apply its effects for the running file."""
        touched = [*_prefixes(absolute), *explicit]
        missing = [each for each in touched if self._may_load(each)]
        before = effects.capture() if missing else None
        try:
            module = _import(*arguments)
        finally:
            for each in explicit:
                self._note(edges, each)
        if before is not None:
            self._attribute(effects.since(before)[0], missing)
            self.arrived()
        for each in touched:
            if each in self._effects and each not in self.applied:
                self._effects[each].apply()
            self.applied.add(each)
        if absolute.partition(".")[0] == "jax":
            self.jax = True
        return module

    def _import_within(self, arguments: Any) -> ModuleType:
        """Import for an installed module, and apply changed options for the running file.

        All other effects are recorded only for imports of the project's files, because capturing
        them for each import of a large library is slow.
        """
        name, globals, _, fromlist, level = arguments
        absolute = name
        if level:
            try:
                package = globals.get("__package__") if globals is not None else None
                absolute = importlib.util.resolve_name("." * level + name, package)
            except (ImportError, ValueError):
                return _import(*arguments)  # raises the proper error
        if absolute in sys.modules and not fromlist:
            touched = [absolute]
        else:
            touched = [*_prefixes(absolute), *(f"{absolute}.{each}" for each in fromlist or ())]
        missing = [each for each in touched if self._may_load(each)]
        before = effects.OPTIONS.read() if missing else None
        module = _import(*arguments)
        if before is not None and (found := effects.of_options(before)) is not None:
            self._effects.update(dict.fromkeys(filter(sys.modules.__contains__, missing), found))
            self.applied.update(missing)
        for each in touched:
            if each in self._effects and each not in self.applied:
                self._effects[each].apply()
                self.applied.add(each)
        return module

    def _attribute(self, found: Effects | None, missing: Sequence[str]) -> None:
        """Record the effects of an import for the modules that it loaded."""
        arrived = [each for each in missing if each in sys.modules]
        if found is not None:
            self._effects.update(dict.fromkeys(arrived, found))
        self.applied.update(arrived)

    def _note(self, edges: Edges, name: str) -> None:
        running = self._running
        if running is not None and name == running.module.__name__ and not running.full_in_place:
            edges[name] = running.serial
        elif (loaded := self.loaded.get(name)) is not None:
            edges[name] = loaded.serial
            self.jax |= loaded.jax

    def _may_load(self, name: str) -> bool:
        """Return whether importing this name may run a module.

        It is then neither loaded nor an attribute of its package.
        """
        if name in sys.modules:
            return False
        parent, _, last = name.rpartition(".")
        package = sys.modules.get(parent)
        if package is None:
            return True
        return hasattr(package, "__path__") and last not in vars(package)

    def _wants_all(self, absolute: str, fromlist: Sequence[str] | None) -> bool:
        """Return whether a module imports names of the running file that are not defined so far."""
        running = self._running
        if running is None or running.full_in_place or running.whole:
            return False
        names = vars(running.module)
        defined = absolute == running.module.__name__ and fromlist
        return not (defined and all(each in names for each in fromlist or ()))

    @contextlib.contextmanager
    def _full_in_place(self) -> Iterator[None]:
        """Replace the running file's module by a full import of it."""
        running = self._running
        assert running is not None
        name = running.module.__name__
        running.full_in_place = True
        try:
            if running.full is None:
                self._import_fully(name)
            else:
                sys.modules[name] = running.full
            yield
        finally:
            running.full = sys.modules.get(name)
            running.full_in_place = False
            sys.modules[name] = running.module

    def _import_fully(self, name: str) -> None:
        """Import the whole file.

        Modules that are partially imported start again, in the order of this import.
        """
        half = {each: sys.modules.pop(each) for each in self._importing if each in sys.modules}
        importing, self._importing = self._importing, []
        del sys.modules[name]
        packages = [each for each in _prefixes(name)[:-1] if each not in sys.modules]
        before = effects.capture()
        try:
            importlib.import_module(name)
            self._attribute(effects.since(before)[0], packages)
        finally:
            self._importing = importing
            for each, module in half.items():
                sys.modules.setdefault(each, module)


def _prefixes(name: str) -> list[str]:
    """Return `a`, `a.b`, `a.b.c` for `a.b.c`."""
    return list(itertools.accumulate(name.split("."), "{}.{}".format))


def _lies_in(path: str, root: str) -> bool:
    """Return whether a file is under the root, but neither installed nor in an environment."""
    if not path.startswith(root.rstrip("/\\") + ("\\" if "\\" in root else "/")):
        return False
    if origins.INSTALLED.intersection(PurePath(path).relative_to(root).parts):
        return False
    return not any(
        path.startswith(prefix) and prefix.startswith(root) and prefix != root
        for prefix in (sys.prefix, sys.base_prefix)
    )
