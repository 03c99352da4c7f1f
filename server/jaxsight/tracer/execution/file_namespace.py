"""A file as it runs in this process: its namespace, and the results of its executed chunks.

Executions are reused, which is only valid as long as nothing has changed the state that they saw:
if a chunk that acts must run again, if a chunk must run before one that has run already, or if a
trace changed the module's objects, the file starts again, with only installed packages loaded.
A request sees the names of its own slice and no others.
A file's changes of the process never affect another file.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
import os
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType

from jaxsight.files.texts import Version
from jaxsight.rewriting.rewriter import CALLED, SEEN
from jaxsight.tracer.compat import devices
from jaxsight.tracer.dry_runs.program_errors import program_error
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.execution.execution_cache import Execution, ExecutionCache, Identity, observed
from jaxsight.tracer.failures import UserError, collected_from_chunk, failure, one_line
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.importing.finding import package_of
from jaxsight.tracer.importing.imports import Imports
from jaxsight.tracer.importing.project_modules import Edges
from jaxsight.tracer.interruptions import CancelledByServer, TookTooLong, at_most
from jaxsight.tracer.isolation import code_origins, process_state, refusals
from jaxsight.tracer.isolation.code_origins import SliceLoader
from jaxsight.tracer.isolation.file_reads import Reads
from jaxsight.tracer.isolation.irreversible_effects import end_children
from jaxsight.tracer.isolation.library_snapshot import Changes
from jaxsight.tracer.isolation.object_snapshot import ObjectSnapshot
from jaxsight.tracer.isolation.process_state import State
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk, chunk_file
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import Caveat, Warned

_ABSENT = object()
_DEFINITIONS = ("def ", "class ", "async def ")


class FileNamespace:
    """A file; `names` has the names of the last prepared slice."""

    def __init__(self, request: Trace, imports: Imports) -> None:
        self.file = request.file
        self.module = ModuleType(request.module)
        self.names = vars(self.module)
        self.recorder = Recorder()
        self._imports = imports
        self.slice: list[Execution] = []
        """The prepared part of the current request's slice."""
        self._needed: tuple[bool, ...] = ()
        """Whether the current request's function needs the names of each chunk."""
        self.executed = 0
        """Number of its chunks that were executed."""
        self.packages: Edges = {}
        """The packages around the file, as imported for the current request."""
        self._package_errors: dict[str, str] = {}
        """Why packages around the file cannot be imported, by their names."""
        self._package = package_of(request.file, request.module)
        self._executions = ExecutionCache(self.recorder)
        self._state: State | None = None
        self._stopped: set[str] = set()
        """Ids of chunks that took too long and have been skipped since."""
        self._before_trace: ObjectSnapshot | None = None
        self.guesses_devices = False
        """Whether nobody has named the number of devices for the current request."""
        self.announce: Callable[[Chunk], None] = lambda chunk: None
        """Called before a statement that may take long is executed."""
        self.starting_over: Callable[[], None] = lambda: None
        """Called before all executions are forgotten."""
        self.reads = Reads()
        """Files that its statements have read."""
        self.ran: set[str] = set()
        """The keys of its statements that have run."""
        self.changes = Changes()
        """What they have changed in other modules."""
        self.changed_by: frozenset[str] = frozenset()
        """The keys of the statements that may have made these changes."""

    def outdate(self) -> None:
        """Make the next request start from the beginning."""
        self._before_trace = None

    def prepare(self, request: Trace) -> None:
        """Set the namespace to the result of running the request's slice.

        Errors of user code are raised.
        """
        self._stopped.update(request.slow)
        if self._must_start_over(request):
            self._start_over()
        self._before_trace = None
        while True:
            try:
                self._prepare(request)
            except _Again:
                self._start_over()
            else:
                break
        own = {self.module.__name__, *self._imports.modules.loaded}
        self._before_trace = ObjectSnapshot((self.names, *self._imports.modules.namespaces()), own)

    def _prepare(self, request: Trace) -> None:
        self._clear_names(request)
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._execute(request)

        with self._imports.importing(begin, request.whole):
            self._import_packages(request)
            begin()

    def _execute(self, request: Trace) -> None:
        self._needed = tuple(chunk.needed for chunk in request.chunks)
        token: tuple[int, ...] = ()
        occurrences: Counter[str] = Counter()
        acted_before = 0
        for chunk in request.chunks:
            identity = (chunk.key, occurrences[chunk.key], token)
            occurrences[chunk.key] += 1
            execution = self._executions.get(identity)
            # A failed chunk that is needed runs again: now its error ends the request.
            if execution is None or (chunk.needed and execution.failed):
                execution = self._run(chunk, identity, request)
            else:
                self.slice.append(execution)
                self.names.update(execution.bindings)
                for name in execution.unbound:
                    self.names.pop(name, None)
                if execution.effects is not None:
                    execution.effects.apply()
                    self._state = None
                self._imports.jax |= execution.jax
                self._imports.applied |= execution.applied
            self._executions.put(identity, execution)
            execution.acted_before = acted_before
            acted_before += chunk.acts
            if execution.effects is not None:
                token = (*token, execution.effects.serial)

    def _must_start_over(self, request: Trace) -> bool:
        """Return whether a chunk to execute would see another state than in an import."""
        if self._before_trace is None or not self._before_trace.is_current():
            return True
        modules = self._imports.modules
        if any(
            not modules.are_current(execution.imports)
            or not self._imports.texts.are_current(execution.failed_imports)
            or any(map(modules.can_find, execution.missing))
            for execution in self._executions.values()
        ):
            return True
        executed = {key for (key, *_), _ in self._executions.items()}
        stopped = {key for (key, *_), each in self._executions.items() if each.stopped}
        if any(chunk.needed and chunk.key in stopped for chunk in request.chunks):
            return True
        acted = {key for (key, *_), each in self._executions.items() if each.chunk.acts}
        if not acted <= {chunk.key for chunk in request.chunks}:
            return True  # its effects must be undone
        last = max((index for index, chunk in enumerate(request.chunks) if chunk.acts), default=-1)
        if not acted:
            return False
        # A chunk moved past one that acts would be executed again, and lose its effects.
        acted_before_by_text = {
            each.chunk.text: each.acted_before for each in self._executions.values()
        }
        acted_before = 0
        for index, chunk in enumerate(request.chunks):
            has_moved = acted_before_by_text.get(chunk.text, acted_before) != acted_before
            acts = chunk.acts or (chunk.executes and index < last)
            if chunk.key not in executed and (acts or has_moved):
                return True
            acted_before += chunk.acts
        return False

    def _start_over(self) -> None:
        """Forget all executions, and their changes of the project's other modules."""
        # First, while the file's changes of the project's modules are still visible.
        self._imports.modules.renew()
        self.changes.undo()
        self.changes, self.changed_by = Changes(), frozenset()
        self.ran.clear()
        self.starting_over()
        self.forget_all()

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Chunks of the slice as they were executed."""
        return tuple(execution.chunk for execution in self.slice)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Chunks of the slice that did not complete, or that began without a package."""
        clauses = ((each.chunk.id, reason) for each, reason in self._doubts())
        return tuple(Caveat(id, reason) for id, reason in dict.fromkeys(clauses))

    def _doubts(self) -> Iterator[tuple[Execution, str]]:
        for package, error in self._package_errors.items() if self.slice else ():
            yield self.slice[0], f"runs without package `{package}`, which raised {error}"
        yield from ((each, each.caveat) for each in self.slice if each.caveat)
        for each in self.slice:
            yield from ((each, clause) for clause in self._imports.modules.refused(each.imports))
        for each, is_needed in zip(self.slice, self._needed, strict=False):
            yield from ((each, absence) for absence in each.absences if is_needed)
        for absence in placeholders.uses if self.slice else ():  # while the function was traced
            binding = (e for e in self.slice if placeholders.stand_in(e.bindings, absence))
            yield next(binding, self.slice[-1]), absence

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Python's warnings in the execution of the slice's chunks."""
        return tuple(dict.fromkeys(warning for each in self.slice for warning in each.warnings))

    def cancel(self) -> None:
        """Stop user code at its next observed expression or chunk; any thread may call this."""
        self.recorder.cancelled = True

    def note_imports(self) -> None:
        """Add later imports by their functions to the executions in use."""
        for execution in self.slice:
            execution.imports.update(self._imports.used.get(execution.file, {}))

    def files(self) -> dict[str, Version]:
        """Return the project's files, except its own, whose changes invalidate the slice."""
        used = {name for execution in self.slice for name in execution.imports}
        files = dict(self._imports.modules.attempted)
        for execution in self.slice:
            files |= execution.failed_imports
        files |= self._imports.modules.files_of(used | self.packages.keys())
        files.pop(self.file, None)
        return files

    def depends_on(self) -> set[str]:
        """Return the file itself, and those of the project that it depends on, as far as known."""
        return {self.file, *self.files()}

    def importer_of(self, file: str) -> Chunk | None:
        """Return the first chunk whose execution imported a file of the project, if any did."""
        files_of = self._imports.modules.files_of
        importing = (each.chunk for each in self.slice if file in files_of(set(each.imports)))
        return next(importing, None)

    def imported_by(self, request: Trace) -> Collection[str] | None:
        """Return the project's files that a slice imports; `None` if not all of it has run yet."""
        executed = {identity[0]: execution for identity, execution in self._executions.items()}
        if any(chunk.key not in executed for chunk in request.chunks):
            return None
        names = {name for chunk in request.chunks for name in executed[chunk.key].imports}
        return self._imports.modules.files_of(names)

    def trim(self) -> None:
        """Drop executions that are unlikely to be needed again."""
        self._executions.trim(self.slice)

    def forget_all(self) -> None:
        """Drop all executions."""
        self._executions.clear()

    def _clear_names(self, request: Trace) -> None:
        self._executions.drop_failed(self.slice)
        placeholders.uses.clear()
        self.slice = []
        self.executed = 0
        name, file = self.module.__name__, request.file
        folders = [str(PurePath(file).parent)] if name == self._package else None
        loader = SliceLoader(name, file)
        spec = spec_from_file_location(
            name, file, loader=loader, submodule_search_locations=folders
        )
        assert spec is not None  # as there is a loader
        self.names.clear()
        self.names.update(vars(module_from_spec(spec)), __package__=self._package)
        self.names["__builtins__"] = builtins
        self.names[SEEN] = self.recorder.record
        self.names[CALLED] = self.recorder.call

    def _import_packages(self, request: Trace) -> None:
        """Import the packages around the file, outermost first, as importing the file would."""
        self._state = None
        self.packages = {}
        self._package_errors = {}
        around = self.module.__name__.split(".")[:-1] if self._package else []
        parents = list(PurePath(request.file).parents)
        if self._package == self.module.__name__:
            del parents[0]
        for depth in range(1, len(around) + 1):
            folder = parents[min(len(around) - depth, len(parents) - 1)]
            package = ".".join(around[:depth])
            if error := self._imports.import_package(package, str(folder), self.packages):
                self._package_errors[package] = error

    def _run(self, chunk: Chunk, identity: Identity, request: Trace) -> Execution:
        if self.recorder.cancelled:
            raise CancelledByServer
        if not chunk.text.startswith(_DEFINITIONS) or chunk.executes or chunk.acts:
            self.announce(chunk)
        _, occurrence, token = identity
        # Different executions of a key are observed separately.
        chunk = replace(chunk, key="/".join(map(str, (chunk.key, occurrence, *token))))
        file = chunk_file(self.file, chunk.id, chunk.above)
        # A plain definition only binds its name.
        only_binds = not (chunk.executes or chunk.acts or chunk.unlimited)
        before = self._state if only_binds or self._state is not None else process_state.capture()
        names, applied = dict(self.names), set(self._imports.applied)
        jax, self._imports.jax = self._imports.jax, False
        self._imports.missing = set()
        placeholders.uses.clear()
        execution = Execution(chunk, file, {}, (), None, {}, frozenset(), False)
        self.slice.append(execution)
        self.executed += 1
        # Python loads the lines of such a file only on request, for tracebacks.
        linecache.cache[file] = (lambda: "\n" * chunk.above + chunk.text,)
        try:
            code = self.recorder.compiled(chunk, file, request.future_flags)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UserError(failure(error, "execute")) from error
        execution.names = frozenset(code_origins.names_in(code))
        warned: list[Warned] = []
        execution.stopped = chunk.id in self._stopped and not chunk.needed
        if execution.stopped:
            execution.caveat = f"was stopped after {request.patience:g} s and skipped"
        else:
            with observed(self.recorder, execution), collected_from_chunk(warned):
                self._exec(code, execution, request)
        if before is not None and not only_binds:
            end_children()  # nothing outlives its statement
            process_state.heed_variables(before, jax)
            if not devices.hold() and not execution.caveat:
                execution.caveat = "sets another number of devices than the target has"
            changes, self._state = process_state.since(before)
            execution.effects = self._executions.with_equal(changes)
        execution.missing |= self._imports.missing
        execution.absences = tuple(placeholders.uses)
        placeholders.uses.clear()
        execution.warnings = tuple(warned)
        items = ((n, value) for n, value in self.names.items() if n != "__warningregistry__")
        bindings = {n: v for n, v in items if n in chunk.binds or names.get(n, _ABSENT) is not v}
        execution.bindings = bindings
        execution.unbound = tuple(names.keys() - self.names.keys())
        for name in (*execution.unbound, *execution.bindings):
            if not execution.caveat and self._is_missed(names.get(name)):
                execution.caveat = f"ends `{name}`, which is kept here: no finalizer of it has run"
        execution.imports = dict(self._imports.used.get(file, {}))
        execution.failed_imports = self._imports.modules.failed()
        execution.applied = frozenset(self._imports.applied - applied)
        execution.jax = self._imports.jax
        self._imports.jax |= jax
        return execution

    def _is_missed(self, value: object) -> bool:
        """Return whether the object's end would be noticed; it is kept alive for later edits.

        That is the case if it has a finalizer or a weak reference.
        """
        kind = type(value)
        if kind.__module__ != self.module.__name__ or isinstance(value, type | FunctionType):
            return False
        if any(value is named_value for named_value in self.names.values()):
            return False
        return hasattr(kind, "__del__") or weakref.getweakrefcount(value) > 0

    def _exec(self, code: CodeType, execution: Execution, request: Trace) -> None:
        """Execute a chunk.

        Errors of a chunk whose names the function does not need are caveats.

        Raises:
            MoreDevices: it failed, and may succeed with more devices.
        """
        chunk = execution.chunk
        key = chunk.key.partition("/")[0]
        refusals.forget()
        if chunk.needed:
            try:
                exec(code, self.names)  # noqa: S102 - runs user code
            except Exception as error:
                device_demand.demand(error, request, key)
                if not self._stands_in(error, execution):
                    raise
            return
        limit = contextlib.nullcontext() if chunk.unlimited else at_most(request.patience)
        try:
            with limit:
                exec(code, self.names)  # noqa: S102
        except TookTooLong:
            self._stopped.add(chunk.id)
            # Starting over undoes what the statement did until then.
            raise _Again from None
        except (CancelledByServer, _Again):
            raise
        except BaseException as error:  # noqa: BLE001 - user code, `SystemExit` included
            device_demand.demand(error, request, key)
            if self._stands_in(error, execution):
                return
            execution.failed = True
            execution.missing = _missing(error)
            # A name may be missing because an earlier chunk failed that binds it.
            others = [each for each in self.slice if each is not execution]
            lost = {n for each in others if each.caveat or each.failed for n in each.chunk.binds}
            if not isinstance(error, NameError) or error.name not in lost:
                execution.caveat = f"raised {one_line(error)}"
                execution.error = program_error(error, [each.chunk.text for each in self.slice])

    def _stands_in(self, error: BaseException, execution: Execution) -> bool:
        """Bind a chunk's names to placeholders if it failed because something is missing.

        Whoever needs one of them gets the error. Other effects of the chunk are a caveat.
        """
        chunk = execution.chunk
        if what := refusals.cause(error, self.names):
            self.names.update(dict.fromkeys(chunk.binds, placeholders.refused(what)))
            if not _only_makes_folder(what, error, chunk.text):
                execution.caveat = f"did not run: it would {what}"
            return True
        absence = placeholders.absence_of(error)
        if absence is None or "*" in chunk.binds:
            return False
        placeholders.uses.clear()
        execution.is_absent, execution.missing = True, _missing(error)
        if chunk.acts and placeholders.may_change(chunk.text, self.names):
            execution.caveat = f"did not run: {absence.reason}"
        for name in (*chunk.binds, *placeholders.containers_changed(chunk.text, self.names)):
            self.names[name] = placeholders.MissingObject(absence, is_module=False)
        return True


class _Again(Exception):
    """The file must start again, without a chunk that took too long."""


def _only_makes_folder(effect: str, error: BaseException, text: str) -> bool:
    """Return whether a statement is a call of a library alone that was refused to make a folder.

    Nothing else of it is left undone, and whoever needs the folder fails.
    """
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    users = sum(code_origins.of_file(file) == code_origins.USER for file in files)
    match placeholders.tree(text).body:
        case [ast.Expr(value=ast.Call())]:
            return effect.startswith("make ") and users == 1
    return False


def _missing(error: BaseException) -> set[str]:
    """Return the missing module or file that an error is about, if any."""
    match error:
        case ModuleNotFoundError(name=str(name)):
            return {name}
        case FileNotFoundError(filename=str(name)):
            return {os.path.abspath(name)}  # noqa: PTH100 - relative to where the chunk runs
    return set()
