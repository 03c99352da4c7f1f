"""The files as they run in this process: a namespace for each, and results of executed chunks.

A chunk is executed once for each `key` that the server sends; after that its bindings and effects
are applied again instead.
This is only valid as long as nothing has changed the state that it saw: if a chunk that acts must
run again, if a chunk must run before one that has run already, or if a trace changed the module's
objects, the world starts again, with only installed packages loaded.
A request sees the names of its own slice and no others.
A file's changes of the process never affect another file.
All caches are bounded, so that thousands of edits do not make the process grow.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import linecache
import os
import sys
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from jaxsight.tracer.compat import devices
from jaxsight.tracer.failures import UserError, clean, failure, one_line
from jaxsight.tracer.isolation import process_effects as effects
from jaxsight.tracer.isolation.footprint import Footprint
from jaxsight.tracer.isolation.import_path import SliceLoader, import_folders, package_of
from jaxsight.tracer.isolation.imports import Edges, Imports
from jaxsight.tracer.isolation.process_effects import Effects, State
from jaxsight.tracer.observation import observer
from jaxsight.tracer.observation.recorder import CancelledByServer, Recorder
from jaxsight.tracer.patience import TookTooLong, at_most
from jaxsight.tracer.user_warnings import innermost_span
from jaxsight.wire.chunks import Chunk, chunk_file
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import Caveat, Warned

WORLDS = 16
"""Maximum number of files whose results are kept."""

VARIANTS = 2
"""Unused executions kept per chunk, so that undoing an edit runs nothing."""

SPARE = 256
"""Maximum number of executions kept that no current slice uses."""

_SHOWWARNING = warnings.showwarning
"""Python's own, or that of the process's parent code."""

Identity = tuple[str, int, tuple[int, ...]]
"""A chunk's key, its index among those with this key, and the serials of effects before it."""


@dataclass(slots=True)
class Executed:
    """An execution of a chunk, with all results that are needed to repeat it without a run."""

    chunk: Chunk
    """As executed: its id is in its frames and spans, even if later texts have the same meaning.

    Its key is unique for this execution.
    """
    file: str
    bindings: dict[str, object]
    unbound: tuple[str, ...]
    effects: Effects | None
    imports: Edges
    applied: frozenset[str]
    jax: bool
    warnings: tuple[Warned, ...] = ()
    names: frozenset[str] = frozenset()
    """Names in its code."""
    linked: bool = False
    """Whether `uses` is known."""
    failed: bool = False
    """Whether it raised an error, which chunks that need its names raise too."""
    caveat: str = ""
    """Why it did not complete; empty if it did, or if another caveat explains it."""
    acted_before: int = 0
    """Number of chunks above it that act."""
    missing: str = ""
    """The missing module or file that made it fail; once it exists, the chunk runs again."""
    uses: set[Identity] = field(default_factory=set)
    """The executions that bound those names.

    It may refer to their objects, so it must not outlive them.
    """


class World:
    """A file; `namespace` has the names of the last prepared slice."""

    def __init__(self, request: Trace) -> None:
        self.file = request.file
        self.module = ModuleType(request.module)
        self.namespace = vars(self.module)
        self.recorder = Recorder()
        self.slice: list[Executed] = []
        """The prepared part of the current request's slice."""
        self.executed = 0
        """Number of its chunks that were executed."""
        self.packages: Edges = {}
        """The packages around the file, as imported for the current request."""
        self._package = package_of(request.file, request.module)
        self._records: OrderedDict[Identity, Executed] = OrderedDict()
        self._effects: list[Effects] = []
        self._state: State | None = None
        self._stopped: set[str] = set()
        """Ids of chunks that took too long and have been skipped since."""
        self._before_trace: Footprint | None = None
        self.starting_over: Callable[[], None] = lambda: None
        """Called before all executions are forgotten."""

    def outdate(self) -> None:
        """Make the next request start from the beginning."""
        self._before_trace = None

    def prepare(self, request: Trace, imports: Imports) -> None:
        """Set the namespace to the result of running the request's slice.

        Errors of user code are raised.
        """
        if self._must_start_over(request, imports):
            self._start_over(imports)
        self._before_trace = None
        while True:
            try:
                self._prepare(request, imports)
            except _Again:
                self._start_over(imports)
            else:
                break
        own = {self.module.__name__, *imports.loaded}
        self._before_trace = Footprint((self.namespace, *imports.namespaces()), own)

    def _prepare(self, request: Trace, imports: Imports) -> None:
        self._clear_names(request)
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._execute(request, imports)

        with imports.importing(begin, request.whole):
            self._import_packages(request, imports)
            begin()

    def _execute(self, request: Trace, imports: Imports) -> None:
        token: tuple[int, ...] = ()
        occurrences: Counter[str] = Counter()
        acted_before = 0
        for chunk in request.chunks:
            identity = (chunk.key, occurrences[chunk.key], token)
            occurrences[chunk.key] += 1
            record = self._records.get(identity)
            if record is None or (chunk.needed and record.failed):
                record = self._run(chunk, identity, request, imports)
            else:
                self._redo(record, imports)
            self._records[identity] = record
            self._records.move_to_end(identity)
            record.acted_before = acted_before
            acted_before += chunk.acts
            if record.effects is not None:
                token = (*token, record.effects.serial)

    def _must_start_over(self, request: Trace, imports: Imports) -> bool:
        """Return whether a chunk to execute would see another state than in an import."""
        if self._before_trace is None or not self._before_trace.holds():
            return True
        if not all(imports.current(record.imports) for record in self._records.values()):
            return True
        if any(r.missing and imports.can_find(r.missing) for r in self._records.values()):
            return True
        executed = {identity[0] for identity in self._records}
        acted = {identity[0] for identity, record in self._records.items() if record.chunk.acts}
        if not acted <= {chunk.key for chunk in request.chunks}:
            return True  # its effects must be undone
        last = max((i for i, c in enumerate(request.chunks) if c.acts), default=-1)
        if not acted:
            return False
        # A chunk moved past one that acts would be executed again, and lose its effects.
        behind = {record.chunk.text: record.acted_before for record in self._records.values()}
        acted_before = 0
        for index, chunk in enumerate(request.chunks):
            if chunk.key not in executed and (
                chunk.acts
                or (chunk.executes and index < last)
                or behind.get(chunk.text, acted_before) != acted_before
            ):
                return True
            acted_before += chunk.acts
        return False

    def _start_over(self, imports: Imports) -> None:
        """Forget all executions, and their changes of the project's other modules."""
        # First, while the file's changes of the project's modules are still visible.
        imports.renew()
        self.starting_over()
        self.forget_all()

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Chunks of the slice as they were executed."""
        return tuple(record.chunk for record in self.slice)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Chunks of the slice that did not complete."""
        return tuple(Caveat(r.chunk.id, r.caveat) for r in self.slice if r.caveat)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Python's warnings in the execution of the slice's chunks."""
        return tuple(dict.fromkeys(each for record in self.slice for each in record.warnings))

    def cancel(self) -> None:
        """Stop user code at its next observed expression or chunk; any thread may call this."""
        self.recorder.cancelled = True

    def note_imports(self, imports: Imports) -> None:
        """Add later imports by their functions to the executions in use."""
        for record in self.slice:
            record.imports.update(imports.used.get(record.file, {}))

    def files(self, imports: Imports) -> tuple[str, ...]:
        """Return the project's files, except its own, whose changes invalidate the slice."""
        used = {name for record in self.slice for name in record.imports}
        found = imports.files_of(used | self.packages.keys()) | imports.files
        return tuple(sorted(found - {self.file}))

    def trim(self) -> None:
        """Drop executions that are unlikely to be needed again, and those that refer to them."""
        self._link()
        live = {id(record) for record in self.slice}
        spare = [each for each in reversed(self._records.items()) if id(each[1]) not in live]
        variants: Counter[tuple[str, ...]] = Counter()
        gone: set[Identity] = set()
        for kept, (identity, record) in enumerate(spare):
            binds = record.chunk.binds
            variants[binds] += 1
            if kept >= SPARE or (binds and variants[binds] > VARIANTS):
                gone.add(identity)
        while gone:
            for identity in gone:
                self._forget(identity)
            gone = {name for name, record in self._records.items() if record.uses & gone}

    def forget_all(self) -> None:
        """Drop all executions."""
        for identity in list(self._records):
            self._forget(identity)
        self._effects.clear()

    def _link(self) -> None:
        """Record which executions bind the names that new executions of the slice use.

        Functions may use names that are bound after them.
        """
        new = [record for record in self.slice if not record.linked]
        if not new:
            return
        known = {id(record): identity for identity, record in self._records.items()}
        binding: dict[str, set[Identity]] = {}
        for record in self.slice:
            if (identity := known.get(id(record))) is not None:
                for name in record.bindings:
                    binding.setdefault(name, set()).add(identity)
        for record in new:
            record.linked = True
            for name in record.names & binding.keys():
                record.uses |= binding[name]
            record.uses.discard(known.get(id(record), ("", 0, ())))

    def _clear_names(self, request: Trace) -> None:
        kept = {id(record) for record in self._records.values()}
        for record in self.slice:
            if id(record) not in kept:  # it raised an error
                self.recorder.forget(record.chunk.id, record.chunk.key)
                self._forget_source(record)
        self.slice = []
        self.executed = 0
        name = self.module.__name__
        spec = ModuleSpec(
            name,
            SliceLoader(name, request.file),
            origin=request.file,
            is_package=name == self._package,
        )
        spec.has_location = True
        self.namespace.clear()
        self.namespace.update(
            __name__=name,
            __doc__=None,
            __package__=self._package,
            __loader__=spec.loader,
            __spec__=spec,
            __file__=request.file,
            __cached__=spec.cached,
            __builtins__=builtins,
        )
        self.namespace[observer.NAME] = self.recorder.record
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(str(PurePath(request.file).parent))
            self.namespace["__path__"] = spec.submodule_search_locations

    def _import_packages(self, request: Trace, imports: Imports) -> None:
        """Import the packages around the file, outermost first, as importing the file would."""
        self._state = None
        self.packages = {}
        around = self.module.__name__.split(".")[:-1] if self._package else []
        parents = list(PurePath(request.file).parents)
        if self._package == self.module.__name__:
            del parents[0]
        for depth in range(1, len(around) + 1):
            folder = parents[min(len(around) - depth, len(parents) - 1)]
            imports.import_package(".".join(around[:depth]), str(folder), self.packages)

    def _run(self, chunk: Chunk, identity: Identity, request: Trace, imports: Imports) -> Executed:
        if self.recorder.cancelled:
            raise CancelledByServer
        _, occurrence, token = identity
        # Different executions of a key are observed separately.
        chunk = replace(chunk, key="/".join(map(str, (chunk.key, occurrence, *token))))
        file = chunk_file(self.file, chunk.id, chunk.above)
        # A plain definition only binds its name.
        plain = not (chunk.executes or chunk.acts or chunk.unlimited)
        before = self._state if plain or self._state is not None else effects.capture()
        names = dict(self.namespace)
        applied = set(imports.applied)
        jax, imports.jax = imports.jax, False
        record = Executed(chunk, file, {}, (), None, {}, frozenset(), False)
        self.slice.append(record)
        self.executed += 1
        # Python loads the lines of such a file only on request.
        linecache.cache[file] = (functools.partial(_as_file, chunk.text, chunk.above),)
        code = self._compiled(chunk, file, request.future_flags)
        record.names = frozenset(_names(code))
        warned: list[Warned] = []
        if chunk.id in self._stopped:
            record.caveat = f"was stopped after {request.patience:g} s and skipped"
        else:
            with self.recorder.executing(chunk.id, chunk.key), _warnings(warned):
                self._exec(code, record, request.patience)
        if before is not None and not plain:
            effects.heed_variables(before, jax)
            changes, self._state = effects.since(before)
            record.effects = self._known(changes)
        missing = object()
        record.warnings = tuple(warned)
        record.bindings = {
            name: value
            for name, value in self.namespace.items()
            if (names.get(name, missing) is not value or name in chunk.binds)
            and name != "__warningregistry__"
        }
        record.unbound = tuple(names.keys() - self.namespace.keys())
        for name in (*record.unbound, *record.bindings):
            if not record.caveat and self._is_missed(names.get(name)):
                record.caveat = f"ends `{name}`, which is kept here: no finalizer of it has run"
        record.imports = dict(imports.used.get(file, {}))
        record.applied = frozenset(imports.applied - applied)
        record.jax = imports.jax
        imports.jax |= jax
        return record

    def _is_missed(self, value: object) -> bool:
        """Return whether the object's end would be noticed; it is kept alive for later edits.

        That is the case if it has a finalizer or a weak reference.
        """
        kind = type(value)
        if kind.__module__ != self.module.__name__ or isinstance(value, type | FunctionType):
            return False
        if any(value is other for other in self.namespace.values()):
            return False
        return hasattr(kind, "__del__") or weakref.getweakrefcount(value) > 0

    def _exec(self, code: CodeType, record: Executed, patience: float) -> None:
        """Execute a chunk.

        Errors of a chunk whose names the function does not need are caveats.
        """
        chunk = record.chunk
        if chunk.needed:
            exec(code, self.namespace)  # noqa: S102 - runs user code
            return
        limit = contextlib.nullcontext() if chunk.unlimited else at_most(patience)
        try:
            with limit:
                exec(code, self.namespace)  # noqa: S102
        except TookTooLong:
            self._stopped.add(chunk.id)
            raise _Again from None
        except (CancelledByServer, _Again):
            raise
        except BaseException as error:  # noqa: BLE001 - user code, `SystemExit` included
            record.failed = True
            record.missing = _missing(error)
            if not self._follows_from_another(error):
                record.caveat = f"raised {one_line(error)}"

    def _follows_from_another(self, error: BaseException) -> bool:
        """Return whether a chunk failed because of a name that an earlier, failed chunk binds."""
        return isinstance(error, NameError) and any(
            error.name in record.chunk.binds for record in self.slice if record.caveat
        )

    def _compiled(self, chunk: Chunk, file: str, future_flags: int) -> CodeType:
        flags = ast.PyCF_ONLY_AST | future_flags
        try:
            try:
                alone = chunk_file(self.file, chunk.id)
                tree: ast.Module = compile(chunk.text, alone, "exec", flags, dont_inherit=True)
                tree = self.recorder.instrument(tree, chunk.id, chunk.key)
                # Line numbers that code may read must be those of the file.
                ast.increment_lineno(tree, chunk.above)
                code: CodeType = compile(tree, file, "exec", future_flags, dont_inherit=True)
            except RecursionError:
                # Python can compile deeper nesting from text than from a tree: continue without
                # observations.
                whole = _as_file(chunk.text, chunk.above)
                code = compile(whole, file, "exec", future_flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UserError(failure(error, "execute")) from error
        return code

    def _redo(self, record: Executed, imports: Imports) -> None:
        self.slice.append(record)
        self.namespace.update(record.bindings)
        for name in record.unbound:
            self.namespace.pop(name, None)
        if record.effects is not None:
            record.effects.apply()
            self._state = None
        imports.jax |= record.jax
        imports.applied |= record.applied

    def _known(self, found: Effects | None) -> Effects | None:
        """Return equal effects of an earlier execution, so that chunks after them are reused."""
        if found is None:
            return None
        for known in self._effects:
            if known.same_as(found):
                return known
        self._effects.append(found)
        return found

    def _forget(self, identity: Identity) -> None:
        record = self._records.pop(identity)
        self.recorder.forget(record.chunk.id, record.chunk.key)
        self._forget_source(record)

    def _forget_source(self, record: Executed) -> None:
        if all(other.file != record.file for other in self._records.values()):
            linecache.cache.pop(record.file, None)


class _Again(Exception):
    """The world must start again, without a chunk that took too long."""


def _as_file(text: str, above: int) -> str:
    """Return a chunk's text at its place in an otherwise empty file."""
    return "\n" * above + text


def _missing(error: BaseException) -> str:
    """Return the missing module or file that an error is about, if any."""
    match error:
        case ModuleNotFoundError(name=str(name)):
            return name
        case FileNotFoundError(filename=str(name)):
            return os.path.abspath(name)  # noqa: PTH100 - relative to where the chunk runs
    return ""


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes that code refers to, including inner functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@contextlib.contextmanager
def _warnings(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings, but keep filters or a hook that a chunk sets."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        span = innermost_span(sys._getframe(1))
        into.append(Warned(category.__name__, clean(str(message)), span))
        if before is not _SHOWWARNING:
            before(message, category, *args, **kwargs)

    with warnings.catch_warnings():
        pass  # resets the warnings that modules have shown already
    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


@contextlib.contextmanager
def _unsaved_lines(file: str, text: str | None) -> Iterator[None]:
    """Provide the editor's text as the lines of a file, instead of that on disk."""
    if text is None:
        yield
        return
    # Without a time, Python does not compare the entry with the file (`linecache.checkcache`).
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


class Worlds:
    """The worlds of recently traced files, one of which runs at a time."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._worlds: OrderedDict[tuple[str, str], World] = OrderedDict()
        self._devices: tuple[str, ...] = ()

    @contextlib.contextmanager
    def running(self, request: Trace) -> Iterator[World]:
        """Activate the world of the request's file: path, working folder, and `sys.modules`."""
        name = (request.file, request.module)
        world = self._worlds.get(name)
        if world is None:
            world = self._worlds[name] = World(request)
        self._worlds.move_to_end(name)
        while len(self._worlds) > WORLDS:
            self._worlds.popitem(last=False)[1].forget_all()
        self._give_devices(request)
        folders = import_folders(request.file, request.module, request.root)
        sys.path[:0] = [each for each in folders if each not in sys.path]
        sys.argv[:] = [request.file]
        if Path(request.root).is_dir():
            os.chdir(request.root)
        with (
            self._imports.running(world.module, request.file, folders),
            _unsaved_lines(request.file, self._imports.texts.unsaved(request.file)),
        ):
            try:
                yield world
            finally:
                world.note_imports(self._imports)
                world.trim()

    def _give_devices(self, request: Trace) -> None:
        """Reset the number of devices for a file that sets it, after another file has used them."""
        wanted = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        if wanted == self._devices:
            return
        self._devices = wanted
        if devices.reset():
            for world in self._worlds.values():
                world.forget_all()
