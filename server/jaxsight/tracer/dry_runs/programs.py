"""Run the programs of a request dry, and keep the calls of the file's functions."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType

import jax

from jaxsight.files.texts import Version
from jaxsight.lru import Recent
from jaxsight.rewriting.compiling import codes_in, compiled
from jaxsight.rewriting.rewriter import CALLED, LOCALS, SEEN
from jaxsight.rewriting.survival import SurvivalRewriter
from jaxsight.text.names import bound_in_scope
from jaxsight.tracer.compat import contexts, eager_programs
from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.command_lines import CommandLine
from jaxsight.tracer.dry_runs.entry_calls import EntryCalls
from jaxsight.tracer.dry_runs.noted_calls import ExecutedStatements, NotedCalls
from jaxsight.tracer.dry_runs.runtime import DryRuntime
from jaxsight.tracer.dry_runs.values import unknown
from jaxsight.tracer.failures import UserError
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.importing.project_modules import Edges, ProjectModules
from jaxsight.tracer.interruptions import CancelledByServer, at_most
from jaxsight.tracer.isolation import code_origins, refusals
from jaxsight.tracer.observation.observed_values import Observed, Sites
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk, chunk_file, real_file
from jaxsight.wire.messages.inputs import EntryPoint, InputCall
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import ProgramError

logger = logging.getLogger(__name__)

# Bound now, as user code may replace it.
_clear_caches: Callable[[], None] = jax.clear_caches

_REWRITING = 2.0
"""Seconds of processor time after which no further module of the project is rewritten in a run, a
choice: a library that is developed has hundreds, and most are not what its tests are about.
"""
_MODULES = 256
"""Modules whose rewritten codes are kept, a choice: those of a large project."""
_RUNS = 3
"""Runs of a program whose unknown sizes do not fit what it does with them, a choice."""
_KEPT = 32
"""Dry runs whose calls are kept, with the objects in them; other programs run again."""
_MAIN = "__main__"
_DECORATORS = "decorator_list"
_UNREADABLE = (SyntaxError, ValueError, RecursionError)
_Codes = dict[tuple[str, int], CodeType]
"""The codes of functions, by name and first line."""
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(slots=True)
class DryRunResult:
    """What a dry run has shown; `names` are the objects of the file that it depends on."""

    calls: Mapping[str, list[NotedCall]]
    ran: tuple[str, ...]
    """The functions of the file that ran outside of JAX's transformations."""
    fed: tuple[str, ...]
    """Types of the arrays that models are called with."""
    files: dict[str, Version]
    edges: Edges
    names: Mapping[str, object]
    observed: Observed
    """The observations in the file."""
    errors: tuple[ProgramError, ...] = ()
    """What ended statements of the file's own program."""
    sizes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The lines of code that unknown sizes are from, and numbers that stand for them, by name."""
    fails: bool = False
    """Whether a function could not be traced with its example inputs."""


TraceGiven = Callable[[InputCall, str, dict[str, object]], None]
"""Traces a function with its example inputs, given the file and the namespace that it is in."""


class DryRuns:
    """The dry runs of this process; the newest ones are kept."""

    def __init__(self, modules: ProjectModules) -> None:
        self.modules = modules
        self.runtime = DryRuntime()
        self.codes: Recent[tuple[str, str], _Codes] = Recent(_MODULES)
        """The rewritten codes of modules, by file and text."""
        self._ran: Recent[object, DryRunResult] = Recent(_KEPT)
        unknown.refuse_to_iterate()

    def ran(
        self,
        request: Trace,
        names: dict[str, object],
        recorder: Recorder,
        entry: EntryPoint,
        patience: float,
        executed: ExecutedStatements,
        trace_given: TraceGiven,
    ) -> DryRunResult:
        """Run a program dry, unless that has been done for the same texts.

        Args:
            request: the request with the slice of the file, which has been executed.
            names: the file's namespace.
            recorder: it records the calls of the file's functions.
            entry: where the program begins.
            patience: seconds after which it is stopped.
            executed: what the statements of the file did.
            trace_given: traces functions that have example inputs.
        """
        self.runtime.install()  # names in `builtins` end with each request
        is_own = entry.is_own(request.file)
        chunks = (*(c.key for c in request.chunks), *(c.id for c in request.skipped))
        key = request.file, entry, chunks if is_own else ()
        known = self._ran.get(key)
        if known is not None and (
            self.modules.are_current(known.edges)
            and self.modules.texts.are_current(known.files)
            and all(names.get(name) is value for name, value in known.names.items())
        ):
            return known
        seen = executed if is_own else None
        unknown.sizes.begin()
        deadline = time.monotonic() + patience
        for _ in range(_RUNS):
            began = time.monotonic()
            run = _Run(self, request, names, recorder, entry, seen, trace_given)
            ran = run.run(deadline - began)
            now = time.monotonic()
            # Another run takes about as long as this one: as much time has to be left.
            if not unknown.sizes.has_changed or now - began > deadline - now:
                break
        self._ran.put(key, ran)
        return ran


@dataclass
class _Run:
    """One dry run."""

    _runs: DryRuns
    _request: Trace
    _names: dict[str, object]
    _recorder: Recorder
    _entry: EntryPoint
    _executed: ExecutedStatements | None
    _trace_given: TraceGiven
    _fails: bool = False
    _files: dict[str, Version] = field(default_factory=dict)
    _replaced: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    """The functions whose codes were replaced, with their own ones."""
    _rewritten: set[int] = field(default_factory=set)
    _own: _Codes = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._modules, self._runtime = self._runs.modules, self._runs.runtime
        self._seen = self._executed or ExecutedStatements()
        own_names = {name for chunk in self._request.chunks for name in chunk.binds}
        self._calls = EntryCalls(self._entry, own_names, self._runtime.call, self._read)
        self._command_line = CommandLine(self._entry.file, self._read)

    def run(self, patience: float) -> DryRunResult:
        runtime, before = self._runtime, dict(self._names)
        calls = NotedCalls(self._seen, _Run._begin.__code__)
        texts = [chunk.text for chunk in self._request.chunks]
        runtime.begin(self._request.file, calls, self._imported, texts)
        runtime.is_complete = self._executed is not None and not self._seen.incomplete
        loaded, needed = dict(sys.modules), dict(placeholders.uses)
        sites: list[Sites] = []

        def program() -> tuple[()]:
            with runtime.running():
                self._begin()
            return ()

        self._recorder.capture = self._report
        try:
            self._rewrite_file()
            self._imported()
            with (
                at_most(patience),  # first: it starts a thread
                refusals.refusing(),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                self._command_line.applied(),
                contexts.eager(),
                self._recorder.tracing() as sites,
                eager_programs.telling(runtime.calls.program, runtime.is_outer),
            ):
                jax.make_jaxpr(program)()
        except CancelledByServer:
            raise
        except BaseException as error:  # noqa: BLE001 - user code, or its time is over
            logger.debug("the program ended: %r", error)
        finally:
            self._recorder.capture = None
            runtime.imported = lambda: None
            # Reversed: a function that was replaced twice gets its first code back.
            for function, code in reversed(self._replaced):
                function.__code__ = code
            # In place: functions have this dictionary as their globals.
            self._names.clear()
            self._names.update(before)
            for name in (_MAIN, self._entry.module):
                if name in loaded:
                    sys.modules[name] = loaded[name]
                else:
                    sys.modules.pop(name, None)
            placeholders.uses.clear()
            placeholders.uses.update(needed)
            # Functions that were traced here may hold this trace's arrays, and were not observed.
            _clear_caches()
        return self._result(before, sites)

    def _result(self, before: Mapping[str, object], sites: list[Sites]) -> DryRunResult:
        """Return what the run has shown, given the names before it and what was recorded."""
        runtime = self._runtime
        self._files.pop(self._request.file, None)
        edges = {name: module.serial for name, module in self._modules.loaded.items()}
        stable = {n: v for n, v in before.items() if callable(v) and not n.startswith("__")}
        calls = {name: calls for name, calls in runtime.calls.by_function.items() if calls}
        chunks = (*self._request.chunks, *self._request.skipped)
        observed = self._recorder.collect(chunks, sites)
        for chunk in self._request.skipped:
            self._recorder.forget(chunk.id, chunk.key)
        own = {function for chunk in self._request.chunks for function in chunk.binds}
        ran = tuple(name for name in runtime.ran if name.partition(".")[0] in own)
        fed, errors = tuple(runtime.fed), (*self._of_statements(), *runtime.errors)
        places = unknown.sizes.places.items()
        sizes = {name: (self._line(file, line), number) for name, (file, line, number) in places}
        return DryRunResult(
            calls, ran, fed, self._files, edges, stable, observed, errors, sizes, self._fails
        )

    def _line(self, file: str, line: int) -> str:
        """Return a line of code, without the blanks around it."""
        lines = self._modules.texts.current(real_file(file)).splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _read(self, path: str) -> str:
        self._files[path] = self._modules.texts.version(path)
        return self._modules.texts.current(path)

    def _begin(self) -> None:
        """Run the program: its statements, then the function that it begins with."""
        entry = self._entry
        own = entry.file == self._request.file
        if entry.text:
            names = self._names if own else _fresh(_MAIN, entry.file)
            self._execute(entry.text, entry.file, names, above=entry.line)
        elif own and entry.given:
            self._call_given(self._names)
        elif own and not entry.function:
            self._names["__name__"] = _MAIN
            # Those that the slice does not execute: calls, and the main guard.
            for line, source, is_skipped in self._statements():
                if is_skipped:
                    self._execute(source, entry.file, self._names, above=line - 1)
        elif own:
            self._calls.call_all(self._names)
        else:
            is_main = not (entry.function or entry.given)
            module = ModuleType(_MAIN if is_main else entry.module)
            module.__dict__.update(_fresh(module.__name__, entry.file))
            if entry.module.rpartition(".")[0] in sys.modules:
                module.__package__ = entry.module.rpartition(".")[0]
            sys.modules[module.__name__] = module
            self._execute(self._read(entry.file), entry.file, module.__dict__)
            if entry.given:
                self._call_given(module.__dict__)
            if entry.function:
                self._command_line.fill_flags()
                self._calls.call_all(module.__dict__)

    def _of_statements(self) -> Iterator[ProgramError]:
        """Yield the errors of statements that were executed.

        What comes after a statement that was not executed, or not to its end, may be due to that.
        """
        follows = False
        for _, source, is_skipped in self._statements() if self._executed is not None else ():
            if (error := self._seen.incomplete.get(source.strip())) is not None:
                yield replace(error, is_certain=error.is_certain and not follows)
            follows |= is_skipped or source.strip() in self._seen.incomplete

    def _statements(self) -> Iterator[tuple[int, str, bool]]:
        """Yield the lines, from 1, and the texts of statements, and whether each was skipped."""
        stopped = self._seen.stopped
        executed = {chunk.text.strip() for chunk in self._request.chunks} - stopped
        # What these bind is gone, with the values that it had before.
        gone = {n for c in self._request.chunks if c.text.strip() in stopped for n in c.binds}
        text = self._modules.texts.current(self._request.file)
        lines = text.splitlines(keepends=True)
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        for node in tree.body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, _DECORATORS, ()))])
            source = "".join(lines[first - 1 : node.end_lineno])
            binds = set(bound_in_scope(node))
            is_run = source.strip() in executed and _MAIN not in source and not gone & binds
            # A definition may not have been executed, as its decorator is not there.
            is_defined = isinstance(node, _DEFINING) and self._names.keys() >= binds
            yield first, source, not is_run and not is_defined

    def _call_given(self, names: dict[str, object]) -> None:
        """Trace functions with their example inputs, and keep what they call.

        Calls of one whose trace fails count for functions that no other one calls.
        """
        runtime, found, failed = self._runtime, NotedCalls(), NotedCalls()
        try:
            for given in self._entry.given:
                runtime.calls, into = NotedCalls(end=_Run._begin.__code__, is_given=True), found
                try:
                    self._trace_given(given, self._entry.file, names)
                except UserError as error:
                    logger.debug("%s was not traced: %r", given.function, error)
                    self._fails, into = True, failed
                runtime.calls.by_function.pop(given.function, None)  # they are its own inputs
                into.join(runtime.calls)
        finally:
            runtime.calls = found
            found.by_function = {**failed.by_function, **found.by_function}

    def _execute(self, text: str, file: str, names: dict[str, object], above: int = 0) -> None:
        """Run rewritten statements one after another."""
        request, stripped = self._request, text.strip()
        chunks = (*request.chunks, *request.skipped) if file == request.file else ()
        chunk = next((each for each in chunks if each.text.strip() == stripped), None)
        rewriter = SurvivalRewriter(expressions=chunk is not None)
        try:
            if chunk is not None:
                chunk = replace(chunk, text=text, above=above)
                code = self._recorder.compiled(chunk, file, request.future_flags, rewriter)
            else:
                code = compiled(text, file, rewriter.rewrite, above=above)
        except _UNREADABLE:
            return
        exec(code, names)  # noqa: S102 - user code

    def _replace(self, function: FunctionType, codes: _Codes) -> None:
        """Give a function its rewritten code, if that has the same variables."""
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        # Python refuses a code with another number of free variables.
        if new is not None and new.co_freevars == old.co_freevars:
            self._replaced.append((function, old))
            function.__code__ = new

    def _rewrite_file(self) -> None:
        """Replace the codes of the file's functions, and note their calls."""
        file = self._request.file
        for chunk in self._request.chunks:
            if "def " in chunk.text:
                with contextlib.suppress(*_UNREADABLE):
                    self._own |= self._rewritten_chunk(chunk)
        for function in _functions_in(self._names.values()):
            old = function.__code__
            if real_file(old.co_filename) != file:
                continue
            self._runtime.original |= {c.co_qualname: c for c in codes_in(old)}
            self._replace(function, self._own)
            self._runtime.own |= {old, function.__code__}

    def _adopt(self, module: ModuleType) -> None:
        """Let a copy of the file that others import report what its functions are called with.

        A package that imports the file itself has one, and its tests call that.
        """
        for hook in (SEEN, CALLED):
            # Nested functions are traced later, with these globals.
            vars(module)[hook] = self._names[hook]
        for function in _functions_in(tuple(vars(module).values())):
            if function.__code__.co_filename == self._request.file:
                self._replace(function, self._own)

    def _rewritten_chunk(self, chunk: Chunk) -> _Codes:
        rewriter = SurvivalRewriter(expressions=True)
        file = chunk_file(self._request.file, chunk.id, chunk.above)
        code = self._recorder.compiled(chunk, file, self._request.future_flags, rewriter)
        return _codes_of(rewriter.functions, code)

    def _imported(self) -> None:
        """Rewrite the functions of the project's modules that were imported since the last time."""
        self._command_line.imported()
        deadline = time.process_time() + _REWRITING
        text = self._entry.text or self._read(self._entry.file)
        loaded = tuple(self._modules.loaded.items())
        # Those that the program names come first: what it calls is theirs.
        for name, each in sorted(loaded, key=lambda m: m[0].rpartition(".")[2] not in text):
            module = sys.modules.get(name)
            if module is None or id(module) in self._rewritten:
                continue
            codes = self._codes_of(each.path, deadline)
            if codes is None:
                return
            self._rewritten.add(id(module))
            if each.path == self._request.file:
                self._adopt(module)
                continue
            for function in _functions_in(tuple(vars(module).values())):
                if function.__code__.co_filename == each.path:
                    self._replace(function, codes)
                elif real_file(function.__code__.co_filename) == self._request.file:
                    # As a package has them that imported the file before it was executed again.
                    self._replace(function, self._own)

    def _codes_of(self, file: str, deadline: float) -> _Codes | None:
        """Return the rewritten codes of a module; `None` if the processor time is over."""
        if file == self._request.file:
            return self._own
        text, known = self._read(file), self._runs.codes
        codes = known.get((file, text))
        # Of this process: a busy machine rewrites as many.
        if codes is None and time.process_time() < deadline:
            codes = {}
            with contextlib.suppress(*_UNREADABLE):
                rewriter = SurvivalRewriter()
                code = compiled(text, file, rewriter.rewrite)
                codes = _codes_of(rewriter.functions, code)
            known.put((file, text), codes)
        return codes

    def _report(self, number: int, frame: FrameType) -> None:
        """Note a call of one of the file's functions."""
        runtime = self._runtime
        if LOCALS in frame.f_code.co_qualname:
            runtime.entered(number, frame)
        else:
            runtime.calls.report(self._recorder, number, frame, runtime.tainted)


def _fresh(name: str, file: str) -> dict[str, object]:
    return {"__name__": name, "__file__": file, "__builtins__": __builtins__}


def _functions_in(values: Iterable[object], depth: int = 2) -> Iterator[FunctionType]:
    """Yield the plain functions among a module's values, those under decorators, and methods."""
    for value in values:
        inner = value
        for _ in range(code_origins.WRAPPERS):
            if isinstance(inner, FunctionType):
                yield inner
            if isinstance(inner, staticmethod | classmethod | MethodType):
                inner = inner.__func__
            elif callable(inner) and callable(below := _wrapped(inner)):
                inner = below
            else:
                break
        if isinstance(value, type) and depth:
            yield from _functions_in(tuple(vars(value).values()), depth - 1)


def _wrapped(value: object) -> object:
    try:  # a command of click has a `callback`
        return inspect.getattr_static(value, "__wrapped__", None) or getattr(
            value, "__wrapped__", None if isinstance(value, type) else vars(value).get("callback")
        )
    except Exception:  # noqa: BLE001 - user code
        return None


def _codes_of(names: set[str], code: CodeType) -> _Codes:
    """Return the codes of a module's functions of these names, by name and first line."""
    codes = (each for each in codes_in(code) if each.co_qualname in names)
    return {(each.co_qualname, each.co_firstlineno): each for each in codes}
