"""The calls of a file's functions, as their bodies see them: in a dry run, or as statements run."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

import jax

from jaxsight.meshes.compat import shardings
from jaxsight.recording.observing.functions import arguments
from jaxsight.rewriting.rewriter import LOCALS
from jaxsight.tracer.compat import eager_programs
from jaxsight.tracer.compat.eager_programs import EagerProgram
from jaxsight.tracer.dry_runs import captured
from jaxsight.tracer.dry_runs.captured import Conditions, NotedCall
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.meshes import MANUAL
from jaxsight.wire.messages.inputs import PROGRAM
from jaxsight.wire.observations import ProgramError

_CALLS = 3
"""Different calls that are kept of a function, as of recorded runs (`recorded_file.SETS`)."""
_NOTED = 64
"""Calls of a function that are looked at, as turns of a loop in dry runs: later ones are alike."""

_WRAPPERS = 16
"""Transformations around a function that are opened; without a limit, a cycle never ends."""
_MAPS = re.compile(r"pmap|vmap|Pmap|shard_map|scan", re.IGNORECASE)
"""Names of transformations that pass parts of the arguments on."""


@dataclass(frozen=True, slots=True)
class ExecutedStatements:
    """What statements of a file did that were executed with values."""

    calls: Mapping[str, list[NotedCall]] = field(default_factory=dict)
    """The calls of the file's functions, by qualified name."""
    stopped: frozenset[str] = frozenset()
    """The texts of those that were stopped or not begun, as they take too long or need something
    that is missing: a dry run goes on with something unknown.
    """
    incomplete: Mapping[str, ProgramError | None] = field(default_factory=dict)
    """The texts of those that did not complete, with the error if it is the program's own."""


class NotedCalls:
    """Calls that differ in their types, by qualified name.

    Those with most known arguments are first, then those in what is compiled, then the largest.
    """

    def __init__(
        self,
        executed: ExecutedStatements | None = None,
        end: CodeType | None = None,
        *,
        is_given: bool = False,
    ) -> None:
        """Begin with the calls by statements that were executed before.

        `end` is the code that runs the program, all of which is traced in a dry run. `is_given`
        tells that it is a function with example inputs, whose own trace shows what is below it.
        """
        self._end, self._is_given = end, is_given
        before = executed.calls if executed is not None else {}
        self.by_function = {name: [*calls] for name, calls in before.items()}
        self._noted: Counter[str] = Counter()
        self._whole: tuple[str, int] | None = None
        """The place of the last call of a function that is all of a program."""
        self._known: dict[int, object] = {}
        """Jaxprs of programs that are noted, or need not be, by their ids."""
        self.conditions: Conditions = ()
        """The unknown conditions under which the program runs now."""

    def note(self, frame: FrameType, tainted: Mapping[int, object]) -> NotedCall | None:
        """Return the call of a function of the file that begins; `None` if enough are known.

        Args:
            frame: that of the function.
            tainted: objects that a failed statement may have changed, by their ids.
        """
        name = frame.f_code.co_qualname
        self._noted[name] += 1
        if self._noted[name] > _NOTED:
            return None
        if self._is_given and MANUAL in shardings.mesh(jax.sharding.get_abstract_mesh()).types:
            return None  # alone it is in no `shard_map`, and its arrays vary over nothing
        by_name = dict(arguments(frame))
        file, line = code_origins.caller(frame.f_back)
        if not by_name and not file:
            return None  # a program begins with it: nothing calls it
        if name.endswith(".__init__") and by_name:  # the object is what it makes
            del by_name[next(iter(by_name))]
        call = captured.call_of(by_name, tainted, file, line)
        call.compiled = eager_programs.compiled(frame.f_back, self._end, call_traced.__code__)
        if call.compiled == "root":
            self._whole = file, line
        return call

    def program(self, program: EagerProgram) -> None:
        """Note a program with code of the user's, unless one function of theirs is all of it."""
        frame = sys._getframe(1)
        place, whole, self._whole = code_origins.caller(frame), self._whole, None
        known = any(id(jaxpr) in self._known for jaxpr in program.jaxprs)
        self._known |= {id(jaxpr): jaxpr for jaxpr in program.jaxprs}
        if known or whole == place or not _has_own_code(program, frame):
            return
        calls = self.by_function.setdefault(f"{PROGRAM}{program.title}", [])
        if len(calls) < _NOTED:
            arrays = captured.captured(program.arrays)
            call = NotedCall({"*arrays": arrays}, (), *place, program, compiled="root")
            call.definition = f"{len(calls)}"
            calls.append(call)

    def add(self, name: str, call: NotedCall) -> None:
        """Keep a call, unless it is like others or the last of too many."""
        calls = self.by_function.setdefault(name, [])
        others = [other for other in calls if other.definition == call.definition]
        unify_compiled([*others, call])
        call.conditions = self.conditions
        for other in others:
            if other.types == call.types and other.conditions and not call.conditions:
                other.conditions, other.file, other.line = (), call.file, call.line
        if all(call.types != other.types for other in others):
            calls.append(call)
            calls.sort(key=rank)
            same = [each for each in calls if each.definition == call.definition]
            for last in same[_CALLS:]:
                calls.remove(last)

    def join(self, others: NotedCalls) -> None:
        """Add other calls."""
        for name, calls in others.by_function.items():
            for call in calls:
                self.add(name, call)

    def report(
        self, recorder: Recorder, number: int, frame: FrameType, tainted: Mapping[int, object]
    ) -> None:
        """Note a call that an instrumented function of the file reports by its number."""
        name, found = frame.f_code.co_qualname, recorder.site(number)
        if found is None or (call := self.note(frame, tainted)) is None:
            return
        if LOCALS not in name or call.keep(captured.function_of(frame)):
            call.definition = found[0]
            self.add(name, call)


_ORDER: tuple[eager_programs.Compiled, ...] = ("root", "inside", "part", "eager", "")


def rank(call: NotedCall) -> tuple[int, bool, int, int]:
    """Return what calls are sorted by: those with most known arguments first."""
    order = _ORDER.index(call.compiled)
    return len(call.unknown), bool(call.conditions), order, -call.elements


def unify_compiled(calls: Iterable[NotedCall]) -> None:
    """Give calls with the same types what the one of them is that is most of a program."""
    by_types: dict[str, list[NotedCall]] = {}
    for call in calls:
        by_types.setdefault(call.types, []).append(call)
    for same in by_types.values():
        best = min((each.compiled for each in same), key=_ORDER.index)
        for each in same:
            each.compiled = best


def call_traced(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Trace a function that something missing is called with: `show(jax.jit(f), x, width=5)`.

    The arguments after it are its own if they fit; others are those of what is missing. What is
    traced reports its calls.
    """
    function, *rest = args or (None,)
    with contextlib.suppress(Exception):  # user code, or arguments that do not fit
        if not callable(function) or not _is_of_project(function):
            return
        parameters = inspect.signature(function).parameters
        own = {name: value for name, value in kwargs.items() if name in parameters}
        inspect.signature(function).bind(*rest, **own)
        # That of a jitted function heeds its static arguments.
        evaluate = getattr(function, "eval_shape", functools.partial(jax.eval_shape, function))
        evaluate(*rest, **own)


def _has_own_code(program: EagerProgram, frame: FrameType | None) -> bool:
    """Return whether a program has code of the user's besides that which starts it."""
    starts = {(f.f_code.co_qualname, f.f_code.co_filename) for f in code_origins.outwards(frame)}
    functions = program.functions()
    return any(each not in starts and code_origins.is_users_file(each[1]) for each in functions)


def _is_of_project(function: Callable[..., object]) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code_origins.is_users_file(code.co_filename)


def compiled_as(wrapper: object, function: FunctionType) -> eager_programs.Compiled:
    """Return what a wrapped function is to the program that its wrapper compiles, if it does."""
    if "jit" not in type(wrapper).__name__.lower():
        return "eager"
    inner = getattr(wrapper, "__wrapped__", None)
    return "root" if inner is function or isinstance(inner, functools.partial) else "part"


def called_by(
    function: Any, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[FunctionType, tuple[object, ...], dict[str, object]] | None:
    """Return the function under transformations and `partial`s, and what it is called with.

    It is `None` if there is none, or if a transformation such as `vmap` passes parts of arguments.
    """
    for _ in range(_WRAPPERS):
        name = function.__code__.co_name if type(function) is FunctionType else ""
        if _MAPS.search(type(function).__name__) or _MAPS.search(name):
            return None
        if isinstance(function, functools.partial):
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        elif isinstance(function, MethodType):
            function, args = function.__func__, (function.__self__, *args)
        elif callable(inner := getattr(function, "__wrapped__", None)):
            function = inner
        else:
            break
    return (function, args, kwargs) if isinstance(function, FunctionType) else None
