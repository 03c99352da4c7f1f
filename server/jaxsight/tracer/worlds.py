"""The files as they run in this process: a namespace for each, and what came of every chunk that was executed.

A chunk is executed once for each `key` that the server gives it; after that its bindings and effects are put back
instead. A request sees the names of its own slice and no others. What a file changed in the process never reaches
another file. All that is kept is bounded: thousands of edits must not make the process grow.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
import os
import sys
import warnings
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from types import CodeType, ModuleType

from jaxsight.tracer import effects, observer
from jaxsight.tracer.compat import devices
from jaxsight.tracer.effects import Effects, State
from jaxsight.tracer.failures import UserError, clean, failure
from jaxsight.tracer.imports import Edges, Imports
from jaxsight.tracer.protocol import Chunk, Trace, Warned, chunk_file
from jaxsight.tracer.recorder import CancelledByServer, Recorder
from jaxsight.tracer.tracing import innermost_span

SCRIPTS = "__jaxsight__"
"""The parent in the names of modules that are in no package."""

WORLDS = 16
"""Files whose results are kept."""

VARIANTS = 2
"""Executions kept of one chunk beyond those in use: undoing an edit runs nothing."""

SPARE = 256
"""Executions kept in all that no current slice uses."""

Identity = tuple[str, int, tuple[int, ...]]
"""A chunk's key, which one it is of those with this key, and the serials of the effects it ran under."""


@dataclass(slots=True)
class Executed:
    """One execution of a chunk: all that is needed to have its outcome again without running it."""

    chunk: Chunk
    """As executed: its id is in its frames and spans, even where later texts mean the same; its key is this execution's."""
    file: str
    bindings: dict[str, object]
    unbound: tuple[str, ...]
    effects: Effects | None
    imports: Edges
    applied: frozenset[str]
    jax: bool
    warnings: tuple[Warned, ...] = ()
    names: frozenset[str] = frozenset()
    """What its code mentions."""
    linked: bool = False
    """Whether `uses` is known."""
    uses: set[Identity] = field(default_factory=set)
    """The executions that bound those names: it may hold what they made, so it must not outlive them."""


class World:
    """One file. `namespace` holds the names of the slice that was prepared last."""

    def __init__(self, request: Trace) -> None:
        self.file = request.file
        self.module = ModuleType(request.module)
        self.namespace = vars(self.module)
        self.recorder = Recorder()
        self.slice: list[Executed] = []
        """What has been prepared of the running request's slice."""
        self.executed = 0
        """How many chunks of it had to be executed."""
        self.packages: Edges = {}
        """The packages around the file, as imported for the running request."""
        self._package = _package_of(request)
        self._records: OrderedDict[Identity, Executed] = OrderedDict()
        self._effects: list[Effects] = []
        self._state: State | None = None

    def prepare(self, request: Trace, imports: Imports) -> None:
        """Make the names of the request's slice what running it would. Raises what user code raises."""
        if not all(imports.current(record.imports) for record in self._records.values()):
            self.forget_all()
        self._clear_names(request)
        token = self._import_packages(request, imports)
        occurrences: Counter[str] = Counter()
        for chunk in request.chunks:
            identity = (chunk.key, occurrences[chunk.key], token)
            occurrences[chunk.key] += 1
            record = self._records.get(identity)
            if record is None:
                record = self._run(chunk, identity, request.future_flags, imports)
            else:
                self._redo(record, imports)
            self._records[identity] = record
            self._records.move_to_end(identity)
            if record.effects is not None:
                token = (*token, record.effects.serial)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The slice's chunks as they were executed."""
        return tuple(record.chunk for record in self.slice)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What Python warned of when the slice's chunks were executed."""
        return tuple(dict.fromkeys(each for record in self.slice for each in record.warnings))

    def cancel(self) -> None:
        """Stop what runs at its next observed expression or chunk. May be called from any thread."""
        self.recorder.cancelled = True

    def note_imports(self, imports: Imports) -> None:
        """Add to the executions in use what their functions imported since."""
        for record in self.slice:
            record.imports.update(imports.used.get(record.file, {}))

    def files(self, imports: Imports) -> tuple[str, ...]:
        """The project's files that the running request's slice stands and falls with, its own left out."""
        used = {name for record in self.slice for name in record.imports}
        found = imports.files_of(used | self.packages.keys()) | imports.files
        return tuple(sorted(found - {self.file}))

    def trim(self) -> None:
        """Drop executions that are not likely to be asked for again, and those that hold what these made."""
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
        """Drop every execution."""
        for identity in list(self._records):
            self._forget(identity)
        self._effects.clear()

    def _link(self) -> None:
        """Note whose names the new executions of the slice use; functions use those that are bound after them too."""
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
            if id(record) not in kept:  # it raised
                self.recorder.forget(record.chunk.id, record.chunk.key)
                self._forget_source(record)
        self.slice = []
        self.executed = 0
        name = self.module.__name__
        self.namespace.clear()
        self.namespace.update(
            __name__=name,
            __doc__=None,
            __package__=self._package,
            __loader__=None,
            __spec__=None,
            __file__=request.file,
            __builtins__=builtins,
        )
        self.namespace[observer.NAME] = self.recorder.record
        if self._package:
            folder = str(PurePath(request.file).parent)
            spec = ModuleSpec(name, None, origin=request.file, is_package=name == self._package)
            spec.has_location = True
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(folder)
                self.namespace["__path__"] = spec.submodule_search_locations
            self.namespace["__spec__"] = spec

    def _import_packages(self, request: Trace, imports: Imports) -> tuple[int, ...]:
        """The packages around the file, outermost first, as importing the file would. Answers the serials of their effects."""
        self._state = None
        self.packages = {}
        around = self.module.__name__.split(".")[:-1] if self._package else []
        if not around:
            return ()
        parents = list(PurePath(request.file).parents)
        if self._package == self.module.__name__:
            del parents[0]
        before = effects.capture()
        for depth in range(1, len(around) + 1):
            folder = parents[min(len(around) - depth, len(parents) - 1)]
            imports.import_package(".".join(around[:depth]), str(folder), self.packages)
        found, self._state = effects.since(before)
        known = self._known(found)
        return () if known is None else (known.serial,)

    def _run(
        self, chunk: Chunk, identity: Identity, future_flags: int, imports: Imports
    ) -> Executed:
        if self.recorder.cancelled:
            raise CancelledByServer
        _, occurrence, token = identity
        # Executions of one key that differ otherwise are observed apart.
        chunk = replace(chunk, key="/".join(map(str, (chunk.key, occurrence, *token))))
        file = chunk_file(self.file, chunk.id)
        before = self._state if self._state is not None else effects.capture()
        names = dict(self.namespace)
        applied = set(imports.applied)
        jax, imports.jax = imports.jax, False
        record = Executed(chunk, file, {}, (), None, {}, frozenset(), False)
        self.slice.append(record)
        self.executed += 1
        linecache.cache[file] = (len(chunk.text), None, chunk.text.splitlines(True), file)
        code = self._compiled(chunk, file, future_flags)
        record.names = frozenset(_names(code))
        warned: list[Warned] = []
        with self.recorder.executing(chunk.id, chunk.key), _warnings(warned):
            exec(code, self.namespace)  # noqa: S102 - what a tracer is for
        effects.heed_variables(before, jax)
        found, self._state = effects.since(before)
        missing = object()
        record.effects = self._known(found)
        record.warnings = tuple(warned)
        record.bindings = {
            name: value
            for name, value in self.namespace.items()
            if (names.get(name, missing) is not value or name in chunk.binds)
            and name != "__warningregistry__"
        }
        record.unbound = tuple(names.keys() - self.namespace.keys())
        record.imports = dict(imports.used.get(file, {}))
        record.applied = frozenset(imports.applied - applied)
        record.jax = imports.jax
        imports.jax |= jax
        return record

    def _compiled(self, chunk: Chunk, file: str, future_flags: int) -> CodeType:
        flags = ast.PyCF_ONLY_AST | future_flags
        try:
            try:
                tree: ast.Module = compile(chunk.text, file, "exec", flags, dont_inherit=True)
                tree = self.recorder.instrument(tree, chunk.id, chunk.key)
                code: CodeType = compile(tree, file, "exec", future_flags, dont_inherit=True)
            except RecursionError:
                # Python compiles a text that nests deeper than any tree it takes: go on, not observed.
                code = compile(chunk.text, file, "exec", future_flags, dont_inherit=True)
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
        """The effects of an earlier execution that were the same: what ran under them need not run again."""
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


def _names(code: CodeType) -> Iterator[str]:
    """The global names and attributes that code mentions, in the functions in it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@contextlib.contextmanager
def _warnings(into: list[Warned]) -> Iterator[None]:
    """Collects Python's warnings. Filters are left alone: a chunk may set them for those after it."""

    def show(message: object, category: type[Warning], *_: object, **__: object) -> None:
        span = innermost_span(sys._getframe(1))
        into.append(Warned(category.__name__, clean(str(message)), span))

    with warnings.catch_warnings():
        pass  # makes modules forget which of their warnings were shown
    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


class Worlds:
    """The worlds of the files traced last, one of which runs at a time."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._worlds: OrderedDict[tuple[str, str], World] = OrderedDict()
        self._devices: tuple[str, ...] = ()

    @contextlib.contextmanager
    def running(self, request: Trace) -> Iterator[World]:
        """The world of the request's file, in place: its path, its working folder, its module in `sys.modules`."""
        name = (request.file, request.module)
        world = self._worlds.get(name)
        if world is None:
            world = self._worlds[name] = World(request)
        self._worlds.move_to_end(name)
        while len(self._worlds) > WORLDS:
            self._worlds.popitem(last=False)[1].forget_all()
        self._give_devices(request)
        folders = _folders(request)
        sys.path[:0] = [each for each in folders if each not in sys.path]
        sys.argv[:] = [request.file]
        if Path(request.root).is_dir():
            os.chdir(request.root)
        with self._imports.running(world.module, request.file, folders):
            try:
                yield world
            finally:
                world.note_imports(self._imports)
                world.trim()

    def _give_devices(self, request: Trace) -> None:
        """Let a file that says how many devices there are say so, though another has used them."""
        wanted = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        if wanted == self._devices:
            return
        self._devices = wanted
        if devices.reset():
            for world in self._worlds.values():
                world.forget_all()


def _package_of(request: Trace) -> str:
    """`__package__`: empty for a file that is in none."""
    if PurePath(request.file).name == "__init__.py":
        return request.module
    package = request.module.rpartition(".")[0]
    return "" if package == SCRIPTS else package


def _folders(request: Trace) -> list[str]:
    """What goes onto `sys.path`: the folder of a file that is in no package, the root, and `src` in it."""
    folders = [] if _package_of(request) else [str(PurePath(request.file).parent)]
    if request.root:
        folders += [request.root, str(PurePath(request.root, "src"))]
    return [each for each in dict.fromkeys(folders) if Path(each).is_dir()]
