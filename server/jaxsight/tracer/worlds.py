"""The files as they run in this process: a namespace for each, and what came of every chunk that
was executed.

A chunk is executed once for each `key` that the server gives it; after that its bindings and
effects are put back instead. That is the same only as long as nothing has changed what it saw:
where a chunk that acts must run again, where something that runs must come before one that has run,
or where a trace changed the module's objects, the world starts over with nothing but installed
packages left. A request sees the names of its own slice and no others. What a file changed in the
process never reaches another file. All that is kept is bounded: thousands of edits must not make
the process grow.
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

from jaxsight.tracer import effects, observer
from jaxsight.tracer.compat import devices
from jaxsight.tracer.effects import Effects, State
from jaxsight.tracer.failures import UserError, clean, failure, one_line
from jaxsight.tracer.footprint import Footprint
from jaxsight.tracer.import_path import SliceLoader, import_folders, package_of
from jaxsight.tracer.imports import Edges, Imports
from jaxsight.tracer.patience import TookTooLong, at_most
from jaxsight.tracer.protocol import Caveat, Chunk, Trace, Warned, chunk_file
from jaxsight.tracer.recorder import CancelledByServer, Recorder
from jaxsight.tracer.tracing import innermost_span

WORLDS = 16
"""Files whose results are kept."""

VARIANTS = 2
"""Executions kept of one chunk beyond those in use: undoing an edit runs nothing."""

SPARE = 256
"""Executions kept in all that no current slice uses."""

_SHOWWARNING = warnings.showwarning
"""Python's own, or that of whoever started this process."""

Identity = tuple[str, int, tuple[int, ...]]
"""A chunk's key, which one it is of those with this key, and the serials of the effects it ran
under.
"""


@dataclass(slots=True)
class Executed:
    """One execution of a chunk: all that is needed to have its outcome again without running it."""

    chunk: Chunk
    """As executed: its id is in its frames and spans, even where later texts mean the same; its key
    is this execution's.
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
    """What its code mentions."""
    linked: bool = False
    """Whether `uses` is known."""
    failed: bool = False
    """Whether it raised: what needs it by name raises that too."""
    caveat: str = ""
    """Why it did not run to its end, as far as that is worth saying."""
    acted_before: int = 0
    """How many chunks above it act."""
    missing: str = ""
    """The module or file whose absence made it fail: once that is there it runs again."""
    uses: set[Identity] = field(default_factory=set)
    """The executions that bound those names: it may hold what they made, so it must not outlive
    them.
    """


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
        self._package = package_of(request.file, request.module)
        self._records: OrderedDict[Identity, Executed] = OrderedDict()
        self._effects: list[Effects] = []
        self._state: State | None = None
        self._stopped: set[str] = set()
        """Chunks, by their ids, that took too long and are left out since."""
        self._before_trace: Footprint | None = None
        self.starting_over: Callable[[], None] = lambda: None
        """Called before all that was executed is forgotten."""

    def outdate(self) -> None:
        """Have the next request start over."""
        self._before_trace = None

    def prepare(self, request: Trace, imports: Imports) -> None:
        """Make the names of the request's slice what running it would.

        Raises what user code raises.
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
        """Whether what is to be executed now would see another state than it sees when the module
        is imported.
        """
        if self._before_trace is None or not self._before_trace.holds():
            return True
        if not all(imports.current(record.imports) for record in self._records.values()):
            return True
        if any(r.missing and imports.can_find(r.missing) for r in self._records.values()):
            return True
        executed = {identity[0] for identity in self._records}
        acted = {identity[0] for identity, record in self._records.items() if record.chunk.acts}
        if not acted <= {chunk.key for chunk in request.chunks}:
            return True  # what it did is to be undone
        last = max((i for i, c in enumerate(request.chunks) if c.acts), default=-1)
        if not acted:
            return False
        # What has moved past a chunk that acts would be made anew, and lose what that did to it.
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
        """Forget all that was executed, and what it made of the project's other modules."""
        # First, while what the file changed in modules of the project can still be seen in them.
        imports.renew()
        self.starting_over()
        self.forget_all()

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The slice's chunks as they were executed."""
        return tuple(record.chunk for record in self.slice)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What did not run to its end, of the slice's chunks."""
        return tuple(Caveat(r.chunk.id, r.caveat) for r in self.slice if r.caveat)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What Python warned of when the slice's chunks were executed."""
        return tuple(dict.fromkeys(each for record in self.slice for each in record.warnings))

    def cancel(self) -> None:
        """Stop what runs at its next observed expression or chunk.

        May be called from any thread.
        """
        self.recorder.cancelled = True

    def note_imports(self, imports: Imports) -> None:
        """Add to the executions in use what their functions imported since."""
        for record in self.slice:
            record.imports.update(imports.used.get(record.file, {}))

    def files(self, imports: Imports) -> tuple[str, ...]:
        """The project's files that the running request's slice stands and falls with, its own left
        out.
        """
        used = {name for record in self.slice for name in record.imports}
        found = imports.files_of(used | self.packages.keys()) | imports.files
        return tuple(sorted(found - {self.file}))

    def trim(self) -> None:
        """Drop executions that are not likely to be asked for again, and those that hold what these
        made.
        """
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
        """Note whose names the new executions of the slice use; functions use those that are bound
        after them too.
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
            if id(record) not in kept:  # it raised
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
        """The packages around the file, outermost first, as importing the file would."""
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
        # Executions of one key that differ otherwise are observed apart.
        chunk = replace(chunk, key="/".join(map(str, (chunk.key, occurrence, *token))))
        file = chunk_file(self.file, chunk.id, chunk.above)
        # A plain definition changes nothing but its name.
        plain = not (chunk.executes or chunk.acts or chunk.unlimited)
        before = self._state if plain or self._state is not None else effects.capture()
        names = dict(self.namespace)
        applied = set(imports.applied)
        jax, imports.jax = imports.jax, False
        record = Executed(chunk, file, {}, (), None, {}, frozenset(), False)
        self.slice.append(record)
        self.executed += 1
        # Who asks for the lines of such a file, if anybody, makes Python keep them.
        linecache.cache[file] = (functools.partial(_as_file, chunk.text, chunk.above),)
        code = self._compiled(chunk, file, request.future_flags)
        record.names = frozenset(_names(code))
        warned: list[Warned] = []
        if chunk.id in self._stopped:
            record.caveat = f"was stopped after {request.patience:g} s and is left out"
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
        """Whether something of the module's is told that this object has ended: it is kept for
        edits.
        """
        kind = type(value)
        if kind.__module__ != self.module.__name__ or isinstance(value, type | FunctionType):
            return False
        if any(value is other for other in self.namespace.values()):
            return False
        return hasattr(kind, "__del__") or weakref.getweakrefcount(value) > 0

    def _exec(self, code: CodeType, record: Executed, patience: float) -> None:
        """Execute a chunk.

        What a chunk raises that the function does not need by name is a caveat.
        """
        chunk = record.chunk
        if chunk.needed:
            exec(code, self.namespace)  # noqa: S102 - what a tracer is for
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
        """Whether a chunk failed for want of a name that another one, which failed before it, would
        have bound.
        """
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
                # Code may ask for its lines: they are the file's.
                ast.increment_lineno(tree, chunk.above)
                code: CodeType = compile(tree, file, "exec", future_flags, dont_inherit=True)
            except RecursionError:
                # Python compiles a text that nests deeper than any tree it takes: go on, not
                # observed.
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
        """The effects of an earlier execution that were the same: what ran under them need not run
        again.
        """
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
    """The world must start over, without a chunk that took too long."""


def _as_file(text: str, above: int) -> str:
    """A chunk's text at its place in a file that is empty otherwise."""
    return "\n" * above + text


def _missing(error: BaseException) -> str:
    """The module or file whose absence an error is about."""
    match error:
        case ModuleNotFoundError(name=str(name)):
            return name
        case FileNotFoundError(filename=str(name)):
            return os.path.abspath(name)  # noqa: PTH100 - relative to where the chunk runs
    return ""


def _names(code: CodeType) -> Iterator[str]:
    """The global names and attributes that code mentions, in the functions in it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@contextlib.contextmanager
def _warnings(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings.

    What a chunk sets, filters or a hook, is left to those after it.
    """
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        span = innermost_span(sys._getframe(1))
        into.append(Warned(category.__name__, clean(str(message)), span))
        if before is not _SHOWWARNING:
            before(message, category, *args, **kwargs)

    with warnings.catch_warnings():
        pass  # makes modules forget which of their warnings were shown
    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


@contextlib.contextmanager
def _unsaved_lines(file: str, text: str | None) -> Iterator[None]:
    """Give the editor's text to who asks for the lines of a file, and not what is on disk."""
    if text is None:
        yield
        return
    # Without a time, Python does not compare it with the file (`linecache.checkcache`).
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


class Worlds:
    """The worlds of the files traced last, one of which runs at a time."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._worlds: OrderedDict[tuple[str, str], World] = OrderedDict()
        self._devices: tuple[str, ...] = ()

    @contextlib.contextmanager
    def running(self, request: Trace) -> Iterator[World]:
        """The world of the request's file, in place: its path, its working folder, its module in
        `sys.modules`.
        """
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
        """Let a file that says how many devices there are say so, though another has used them."""
        wanted = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        if wanted == self._devices:
            return
        self._devices = wanted
        if devices.reset():
            for world in self._worlds.values():
                world.forget_all()
