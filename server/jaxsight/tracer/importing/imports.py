"""Follow the imports of a running file: which modules it uses, and the effects of importing them.

The traced file runs under its own name without being imported; names that other modules need from
it and that its slice does not define come from a full import, as they would without jaxsight.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from jaxsight.tracer.failures import one_line
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.importing.finding import init_file, prefixes
from jaxsight.tracer.importing.project_modules import Edges, ProjectModules, RunningFile
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.isolation import process_state
from jaxsight.tracer.isolation.process_state import OPTIONS, Effects

logger = logging.getLogger(__name__)

_import = builtins.__import__
_import_module = importlib.import_module


class WantsWhole(CancelledByServer):
    """Aborts a request whose slice lacks a name that another module imports from the file."""


class Imports:
    """The imports of the running file and of the modules that it imports."""

    def __init__(self) -> None:
        self.modules = ProjectModules()
        self.texts = self.modules.texts
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
        self.missing: set[str] = set()
        """Modules that placeholders stand in for in the chunk that runs."""
        self.arrived: Callable[[], None] = lambda: None
        """Called when code of the project has imported a module that was not loaded."""

    @contextlib.contextmanager
    def running(self, module: ModuleType, file: str, roots: Sequence[str]) -> Iterator[None]:
        """Follow imports while `module` is the traced file.

        `roots` are the folders of the project.
        """
        name = module.__name__
        self.used, self.applied, self.jax, self.wanted = {}, set(), False, ""
        running = self.modules.begin(module, file, roots)
        # Others may have imported the file: that module stays theirs.
        running.full = sys.modules.get(name)
        parent, _, last = name.rpartition(".")
        around = vars(sys.modules[parent]) if parent in sys.modules else {}
        as_attribute = around.get(last)
        sys.modules[name] = module
        # Import statements look it up there; `importlib.import_module` does not.
        builtins.__import__ = self._follow
        importlib.import_module = self._follow_import_module
        try:
            yield
        finally:
            builtins.__import__ = _import
            importlib.import_module = _import_module
            self.modules.end()
            sys.modules.pop(name, None)
            if running.full is not None:
                sys.modules[name] = running.full
            around = vars(sys.modules[parent]) if parent in sys.modules else {}
            # Python sets an imported module in its package, where the slice must not stay.
            if around.get(last) is module:
                del around[last]
                if (standing := running.full or as_attribute) is not None:
                    around[last] = standing

    @contextlib.contextmanager
    def importing(self, begin: Callable[[], None], complete: bool) -> Iterator[None]:
        """Import the running file; `begin` executes it as soon as it is needed.

        `complete`: its slice has all statements of the module.
        """
        running = self.modules.running
        assert running is not None
        running.begin, running.complete = begin, complete
        try:
            yield
        finally:
            running.begin = None

    def import_package(self, package: str, folder: str, used: Edges) -> str:
        """Import the package around the running file, and return why that is not possible.

        If that fails, it is replaced by an empty package that contains its modules: the file can
        still be served, and reports the names that it misses.
        """
        # A project's package gets the slice of the running file, and more if it needs that. An
        # installed one is run by Python itself, which would get an incomplete module.
        fully = package not in sys.modules and not self.modules.is_project(init_file(folder))
        try:
            with self._full_in_place() if fully else contextlib.nullcontext():
                self._import(used, (package, {}, None, ("__name__",), 0), package, [package])
        except CancelledByServer:
            raise
        except BaseException as error:  # noqa: BLE001 - user code; SystemExit too
            logger.warning("package %s could not be imported: %r", package, error)
            loaded = self.modules.put_empty_package(package, folder, one_line(error))
            used[package] = loaded.serial
        standing = self.modules.loaded.get(package)
        return standing.error if standing is not None else ""

    def _follow(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Replace `__import__` while a file runs."""
        arguments = (name, globals, locals, fromlist, level)
        frame = sys._getframe(1)
        try:
            return self._import_followed(arguments, frame.f_code.co_filename)
        except ModuleNotFoundError as error:
            loaded = self.modules.loaded.get(str((globals or {}).get("__name__", "")))
            users = "§" in frame.f_code.co_filename or loaded is not None
            # A relative name is the project's own, and `*` would bind names that nobody knows.
            if not users or level or "*" in (fromlist or ()):
                raise
            placeholder = placeholders.missing_module(error, name, frame)
            if placeholder is None:
                raise
            names = loaded.missing if loaded is not None else self.missing
            names.add(name.partition(".")[0])
            return cast("ModuleType", placeholder)

    def _follow_import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Replace `importlib.import_module` while a file runs."""
        absolute = importlib.util.resolve_name(name, package)
        frame = sys._getframe(1)
        # With a `fromlist`, `__import__` returns the module itself and not its top-level package.
        arguments = (absolute, frame.f_globals, None, ("__name__",), 0)
        return self._import_followed(arguments, frame.f_code.co_filename)

    def _import_followed(self, arguments: Any, code_file: str) -> ModuleType:
        name, globals, _, fromlist, level = arguments
        importer = globals.get("__name__", "") if globals is not None else ""
        loaded = None
        running = self.modules.running
        if "§" in code_file:
            edges: Edges | None = self.used.setdefault(code_file, {})
        elif (loaded := self.modules.loaded.get(importer)) is not None:
            edges = loaded.imports
        elif running is not None and running.installed and not running.full_in_place:
            edges = {}
        else:
            edges = None
        try:
            package = globals.get("__package__") if level and globals is not None else None
            absolute = importlib.util.resolve_name("." * level + name, package)
        except (ImportError, ValueError):
            return _import(*arguments)  # raises the proper error
        if edges is None:
            return self._import_within(arguments, absolute)
        # `from a import b` imports `a.b` if that is a module.
        named = [f"{absolute}.{imported}" for imported in fromlist or ()]
        explicit = [absolute, *named] if named else prefixes(absolute)
        if loaded is None and "§" not in code_file:
            # Another installed module must not get the slice of the traced one.
            wanted = running is not None and running.name in explicit
            with self._full_in_place() if wanted else contextlib.nullcontext():
                return self._import_within(arguments, absolute)
        jax, self.jax = self.jax, False
        try:
            if running is not None and running.name in explicit:
                self._execute_running(running)
                defined = absolute == running.name and fromlist
                lacks_names = not (defined and vars(running.module).keys() >= set(fromlist))
                if lacks_names and not (running.full_in_place or running.complete):
                    # The running file has not defined names that a module imports from it.
                    self.wanted = f"{importer} imports {running.name}"
                    raise WantsWhole(self.wanted)
            return self._import(edges, arguments, absolute, explicit)
        finally:
            if loaded is not None:
                loaded.jax |= self.jax
            self.jax |= jax

    def _execute_running(self, running: RunningFile) -> None:
        """Execute the running file if a package around it is the first to import it."""
        if running.begin is None or running.full_in_place:
            return
        begin, running.begin = running.begin, None
        begin()
        parent, _, last = running.name.rpartition(".")
        if parent in sys.modules:
            # As Python does after an import.
            setattr(sys.modules[parent], last, running.module)

    def _import(
        self, edges: Edges, arguments: Any, absolute: str, explicit: Sequence[str]
    ) -> ModuleType:
        """Import a module, record the edges, and apply its effects for the running file."""
        touched = [*prefixes(absolute), *explicit]
        missing = [module_name for module_name in touched if self._may_load(module_name)]
        # Reading the whole state takes long: only if a module may run.
        before = process_state.capture() if missing else None
        try:
            module = _import(*arguments)
        finally:
            # Also after an error, which the importer may catch.
            for imported in explicit:
                running = self.modules.running
                if running is not None and imported == running.name and not running.full_in_place:
                    edges[imported] = running.serial
                elif (loaded := self.modules.loaded.get(imported)) is not None:
                    edges[imported] = loaded.serial
                    self.jax |= loaded.jax
        if before is not None:
            self._attribute_effects(process_state.since(before)[0], missing)
            self.arrived()
        self._apply(touched)
        self.applied.update(touched)
        if absolute.partition(".")[0] == "jax":
            self.jax = True
        return module

    def _import_within(self, arguments: Any, absolute: str) -> ModuleType:
        """Import for an installed module, and apply changed options for the running file.

        All other effects are recorded only for imports of the project's files, because capturing
        them for each import of a large library is slow.
        """
        fromlist = arguments[3]
        named = [f"{absolute}.{imported}" for imported in fromlist or ()]
        is_known = absolute in sys.modules and not named
        touched = [absolute] if is_known else [*prefixes(absolute), *named]
        missing = [module_name for module_name in touched if self._may_load(module_name)]
        before = OPTIONS.read() if missing else None
        module = _import(*arguments)
        if before is not None and (new_effects := process_state.of_options(before)) is not None:
            self._attribute_effects(new_effects, missing)
        self._apply(touched)
        return module

    def _apply(self, names: Sequence[str]) -> None:
        """Apply effects of modules that have not been applied for the running file."""
        for name in names:
            if name in self.modules.effects and name not in self.applied:
                self.modules.effects[name].apply()
                self.applied.add(name)

    def _attribute_effects(self, new_effects: Effects | None, missing: Sequence[str]) -> None:
        """Record the effects of an import for the modules that it loaded."""
        arrived = [name for name in missing if name in sys.modules]
        if new_effects is not None:
            self.modules.effects.update(dict.fromkeys(arrived, new_effects))
        self.applied.update(arrived)

    def _may_load(self, name: str) -> bool:
        """Return whether importing this name may run a module.

        It is then neither loaded nor an attribute of its package.
        """
        if name in sys.modules:
            return False
        parent, _, last = name.rpartition(".")
        package = sys.modules.get(parent)
        return package is None or (hasattr(package, "__path__") and last not in vars(package))

    @contextlib.contextmanager
    def _full_in_place(self) -> Iterator[None]:
        """Replace the running file's module by a full import of it."""
        running = self.modules.running
        assert running is not None
        name = running.name
        running.full_in_place = True
        try:
            if running.full is None:
                # Modules that are partially imported start again, in the order of this import.
                begun = [name for name in self.modules.importing if name in sys.modules]
                partial_modules = {name: sys.modules.pop(name) for name in begun}
                importing, self.modules.importing = self.modules.importing, []
                del sys.modules[name]
                packages = [each for each in prefixes(name)[:-1] if each not in sys.modules]
                before = process_state.capture()
                try:
                    importlib.import_module(name)
                    self._attribute_effects(process_state.since(before)[0], packages)
                finally:
                    self.modules.importing = importing
                    for partial, module in partial_modules.items():
                        # Unless that import has imported it from its beginning.
                        sys.modules.setdefault(partial, module)
            else:
                sys.modules[name] = running.full
            yield
        finally:
            running.full = sys.modules.get(name)
            running.full_in_place = False
            sys.modules[name] = running.module
