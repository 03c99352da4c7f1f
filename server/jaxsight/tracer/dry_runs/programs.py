"""Run the programs of a request dry, and keep the calls of the file's functions."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax

from jaxsight.files.texts import Version
from jaxsight.lru import Recent
from jaxsight.rewriting.compiling import codes_in, compiled
from jaxsight.rewriting.rewriter import Entry
from jaxsight.rewriting.survival import SurvivalRewriter
from jaxsight.tracer.compat import contexts
from jaxsight.tracer.dry_runs import unknown
from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.command_lines import CommandLine, default_config
from jaxsight.tracer.dry_runs.noted_calls import ExecutedStatements, NotedCalls
from jaxsight.tracer.dry_runs.runtime import DryRuntime
from jaxsight.tracer.dry_runs.unknown import Unknown
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.importing.project_modules import Edges, ProjectModules
from jaxsight.tracer.interruptions import CancelledByServer, at_most
from jaxsight.tracer.isolation import code_origins, refusals
from jaxsight.tracer.observation.observation_table import Observed
from jaxsight.tracer.observation.observed_values import Sites
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk, chunk_file, real_file
from jaxsight.wire.messages.inputs import EntryPoint
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import ProgramError

logger = logging.getLogger(__name__)

_clear_caches: Callable[[], None] = jax.clear_caches

_KEPT = 32
"""Dry runs whose calls are kept, with the objects in them; other programs run again."""
_ARGUMENTS = frozenset({"argv", "_argv", "unused_argv", "_", "args", "_args", "unused_args"})
"""Parameters of main functions that take the command line."""
_MAIN = "__main__"
_DECORATORS = "decorator_list"
_UNREADABLE = (SyntaxError, ValueError, RecursionError)
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
    sizes: Mapping[str, str] = field(default_factory=dict)
    """The lines of code that unknown sizes are from, by name."""


@dataclass(slots=True)
class _Codes:
    """The functions whose codes were replaced, with their own ones."""

    replaced: list[tuple[FunctionType, CodeType]] = field(default_factory=list)

    def replace(self, function: FunctionType, codes: Mapping[tuple[str, int], CodeType]) -> None:
        """Give a function its rewritten code, if that has the same variables."""
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if new is not None and new.co_freevars == old.co_freevars:
            self.replaced.append((function, old))
            function.__code__ = new

    def restore(self) -> None:
        for function, code in reversed(self.replaced):
            function.__code__ = code


class DryRuns:
    """The dry runs of this process; the newest ones are kept."""

    def __init__(self, modules: ProjectModules) -> None:
        self._modules = modules
        self._runtime = DryRuntime()
        self._ran: Recent[object, DryRunResult] = Recent(_KEPT)

    def ran(
        self,
        request: Trace,
        names: dict[str, object],
        recorder: Recorder,
        entry: EntryPoint,
        patience: float,
        executed: ExecutedStatements,
    ) -> DryRunResult:
        """Run a program dry, unless that has been done for the same texts.

        Args:
            request: the request with the slice of the file, which has been executed.
            names: the file's namespace.
            recorder: it records the calls of the file's functions.
            entry: where the program begins.
            patience: seconds after which it is stopped.
            executed: what the statements of the file did.
        """
        self._runtime.install()  # names in `builtins` end with each request
        is_own = entry.is_own(request.file)
        chunks = (*(c.key for c in request.chunks), *(c.id for c in request.skipped))
        key = request.file, entry, chunks if is_own else ()
        known = self._ran.get(key)
        if known is not None and (
            self._modules.are_current(known.edges)
            and self._modules.texts.are_current(known.files)
            and all(names.get(name) is value for name, value in known.names.items())
        ):
            return known
        seen = executed if is_own else None
        run = _Run(self._modules, self._runtime, request, names, recorder, entry, seen)
        ran = run.run(patience)
        self._ran.put(key, ran)
        return ran


class _Run:
    """One dry run."""

    def __init__(
        self,
        modules: ProjectModules,
        runtime: DryRuntime,
        request: Trace,
        names: dict[str, object],
        recorder: Recorder,
        entry: EntryPoint,
        seen: ExecutedStatements | None,
    ) -> None:
        self._modules, self._runtime = modules, runtime
        self._is_own, self._seen = seen is not None, seen or ExecutedStatements()
        self._request, self._names, self._recorder, self._entry = request, names, recorder, entry
        self._files: dict[str, Version] = {}
        self._codes = _Codes()
        self._rewritten: set[int] = set()
        self._command_line = CommandLine(entry.file, self._read)

    def run(self, patience: float) -> DryRunResult:
        runtime, before = self._runtime, dict(self._names)
        runtime.begin(
            self._request.file, NotedCalls(self._seen, _Run._begin.__code__), self._imported
        )
        texts = [chunk.text for chunk in self._request.chunks]
        runtime.watch(texts, is_complete=self._is_own and not self._seen.incomplete)
        loaded, needed = dict(sys.modules), dict(placeholders.uses)
        sites: list[Sites] = []

        def program() -> tuple[()]:
            with runtime.running():
                self._begin()
            return ()

        self._recorder.capture = self._report
        try:
            self._rewrite_file()
            with (
                at_most(patience),  # first: it starts a thread
                refusals.refusing(),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                self._command_line.given(),
            ):
                self._imported()
                with contexts.eager(), self._recorder.tracing() as sites:
                    jax.make_jaxpr(program)()
        except CancelledByServer:
            raise
        except BaseException as error:  # noqa: BLE001 - user code, or its time is over
            logger.debug("the program ended: %r", error)
        finally:
            self._recorder.capture = None
            runtime.imported = lambda: None
            self._codes.restore()
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
        stable = {
            name: value
            for name, value in before.items()
            if callable(value) and not name.startswith("__")
        }
        calls = {name: calls for name, calls in runtime.calls.by_function.items() if calls}
        chunks = (*self._request.chunks, *self._request.skipped)
        observed = self._recorder.collect(chunks, sites)
        for chunk in self._request.skipped:
            self._recorder.forget(chunk.id, chunk.key)
        own = {function for chunk in self._request.chunks for function in chunk.binds}
        ran = tuple(name for name in runtime.ran if name.partition(".")[0] in own)
        fed, errors = tuple(runtime.fed), (*self._of_statements(), *runtime.errors)
        sizes = {name: self._line(*place) for name, place in unknown.sizes.places.items()}
        return DryRunResult(calls, ran, fed, self._files, edges, stable, observed, errors, sizes)

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
        elif own and not entry.function:
            self._names["__name__"] = _MAIN
            for above, source in self._skipped():
                self._execute(source, entry.file, self._names, above=above)
        elif own:
            self._call(self._names, entry.function)
        else:
            module = ModuleType(_MAIN if not entry.function else entry.module)
            module.__dict__.update(_fresh(module.__name__, entry.file))
            if entry.module.rpartition(".")[0] in sys.modules:
                module.__package__ = entry.module.rpartition(".")[0]
            sys.modules[module.__name__] = module
            self._execute(self._read(entry.file), entry.file, module.__dict__)
            if entry.function:
                self._command_line.fill_flags()
                self._call(module.__dict__, entry.function)

    def _skipped(self) -> Iterator[tuple[int, str]]:
        """Yield the statements that the slice does not execute: calls, and the main guard.

        Each has the number of lines above it.
        """
        for line, source, is_skipped in self._statements():
            if is_skipped:
                yield line - 1, source

    def _of_statements(self) -> Iterator[ProgramError]:
        """Yield the errors of statements that were executed.

        What comes after a statement that was not executed, or not to its end, may be due to that.
        """
        follows = False
        for _, source, is_skipped in self._statements() if self._is_own else ():
            if (error := self._seen.incomplete.get(source.strip())) is not None:
                yield replace(error, is_certain=error.is_certain and not follows)
            follows |= is_skipped or source.strip() in self._seen.incomplete

    def _statements(self) -> Iterator[tuple[int, str, bool]]:
        """Yield the lines, from 1, and the texts of statements, and whether each was skipped."""
        executed = {chunk.text.strip() for chunk in self._request.chunks} - self._seen.stopped
        text = self._modules.texts.current(self._request.file)
        lines = text.splitlines(keepends=True)
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        for node in tree.body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, _DECORATORS, ()))])
            source = "".join(lines[first - 1 : node.end_lineno])
            is_run = source.strip() in executed and _MAIN not in source
            yield first, source, not is_run and not isinstance(node, _DEFINING)

    def _call(self, names: Mapping[str, Any], function: str) -> None:
        """Call a function, or a test's method, with the arguments that a program would give it."""
        first, *rest = function.split(".")
        target = names[first]
        is_of_list = False
        if rest and isinstance(target, type):
            is_of_list = not hasattr(target, rest[0])
            # `absl` makes several methods of one that has a list of parameters.
            name = rest[0]
            made = (each for each in vars(target) if each.startswith(name))
            rest = [name if hasattr(target, name) else next(made, name), *rest[1:]]
            target = _instance(target, rest[0])
            if callable(set_up := getattr(target, "setUp", None)):
                self._runtime.call(set_up)
        for part in rest:
            target = getattr(target, part)
        arguments = {} if is_of_list else self._arguments(target, names)
        self._runtime.call(target, **arguments)

    def _arguments(
        self, function: Callable[..., object], names: Mapping[str, object], depth: int = 4
    ) -> dict[str, object]:
        """Return the arguments of a main function or a test, by its parameters; of fixtures too."""
        given: dict[str, object] = dict(_parametrized(function))
        try:
            # Those that a wrapper gives the function are not its own.
            parameters = [*inspect.signature(function, follow_wrapped=False).parameters.values()]
            if any(each.kind is each.VAR_KEYWORD for each in parameters):
                parameters = [*inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            return {}
        kinds = inspect.Parameter
        for parameter in parameters:
            name = parameter.name
            if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD, kinds.POSITIONAL_ONLY):
                continue
            if name in given or parameter.default is not kinds.empty:
                continue
            fixture = _fixture(names.get(name))
            if fixture is not None and depth:
                try:
                    made = fixture(**self._arguments(fixture, names, depth - 1))
                    given[name] = next(made) if inspect.isgenerator(made) else made
                except Exception:  # noqa: BLE001 - user code
                    given[name] = Unknown()
            elif name in _ARGUMENTS:
                given[name] = [self._entry.file]
            elif name == "config":
                given[name] = default_config(self._entry.file, self._read)
            else:
                given[name] = Unknown()
        return given

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

    def _rewrite_file(self) -> None:
        """Replace the codes of the file's functions, and note their calls."""
        file = self._request.file
        codes: dict[tuple[str, int], CodeType] = {}
        entries: dict[str, Entry] = {}
        for chunk in self._request.chunks:
            if "def " not in chunk.text:
                continue
            try:
                codes |= self._rewritten_chunk(chunk, entries)
            except _UNREADABLE:
                continue
        for function in _functions_in(self._names.values()):
            old = function.__code__
            if real_file(old.co_filename) != file:
                continue
            self._runtime.original |= {c.co_qualname: c for c in codes_in(old)}
            self._codes.replace(function, codes)
            if (entry := entries.get(old.co_qualname)) is not None:
                self._runtime.entry_of |= {old: entry, function.__code__: entry}

    def _rewritten_chunk(
        self, chunk: Chunk, entries: dict[str, Entry]
    ) -> dict[tuple[str, int], CodeType]:
        rewriter = SurvivalRewriter(expressions=True)
        file = chunk_file(self._request.file, chunk.id, chunk.above)
        code = self._recorder.compiled(chunk, file, self._request.future_flags, rewriter)
        entries |= {site.entry.function: site.entry for site in rewriter.sites if site.entry}
        return _codes_of(rewriter.functions, code)

    def _imported(self) -> None:
        """Rewrite the functions of the project's modules that were imported since the last time."""
        self._command_line.imported()
        for name, loaded in tuple(self._modules.loaded.items()):
            module = sys.modules.get(name)
            if module is None or id(module) in self._rewritten:
                continue
            self._rewritten.add(id(module))
            rewriter = SurvivalRewriter()
            try:
                code = compiled(self._read(loaded.path), loaded.path, rewriter.rewrite)
            except _UNREADABLE:
                continue
            codes = _codes_of(rewriter.functions, code)
            for function in _functions_in(tuple(vars(module).values())):
                if function.__code__.co_filename == loaded.path:
                    self._codes.replace(function, codes)

    def _report(self, number: int, values: tuple[object, ...]) -> None:
        """Note a call of one of the file's functions that were not rewritten."""
        runtime, frame = self._runtime, sys._getframe(3)
        runtime.calls.report(self._recorder, number, values, frame, runtime.tainted)


def _fresh(name: str, file: str) -> dict[str, object]:
    return {"__name__": name, "__file__": file, "__builtins__": __builtins__}


def _instance(kind: type, method: str) -> object:
    """Return an instance of a class of tests."""
    import unittest

    try:
        return kind(method) if issubclass(kind, unittest.TestCase) else kind()
    except Exception:  # noqa: BLE001 - user code, or a base class that is not installed
        return object.__new__(kind)


def _parametrized(function: object) -> Iterator[tuple[str, object]]:
    """Yield the first values of `pytest.mark.parametrize`."""
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(getattr(mark, "args", ())) > 1:
            names, values = mark.args[:2]
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
            first: Any = next(iter(values), None)
            first = getattr(first, "values", first) if len(listed) > 1 else first
            with contextlib.suppress(TypeError):
                yield from zip(listed, first if len(listed) > 1 else [first], strict=False)


def _fixture(value: object) -> Callable[..., object] | None:
    """Return the function of a pytest fixture, if a value is one."""
    named = "fixture" in type(value).__name__.lower()
    if not named and not hasattr(value, "_pytestfixturefunction"):
        return None
    inner = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    pytest_wrapped = getattr(value, "__pytest_wrapped__", None)
    function: Callable[..., object] | None = getattr(pytest_wrapped, "obj", inner)
    return function


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
    try:
        return inspect.getattr_static(value, "__wrapped__", None) or getattr(
            value, "__wrapped__", None
        )
    except Exception:  # noqa: BLE001 - user code
        return None


def _codes_of(names: set[str], code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the codes of a module's functions of these names, by name and first line."""
    codes = (each for each in codes_in(code) if each.co_qualname in names)
    return {(each.co_qualname, each.co_firstlineno): each for each in codes}
