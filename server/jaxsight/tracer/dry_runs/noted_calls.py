"""The calls of a file's functions, as their bodies see them: in a dry run, or as statements run."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType

import jax

from jaxsight.tracer.compat import compiling
from jaxsight.tracer.dry_runs import captured
from jaxsight.tracer.dry_runs.captured import Conditions, NotedCall
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.observations import ProgramError

_CALLS = 3
"""Different calls that are kept of a function, as of recorded runs (`recorded_file.SETS`)."""
_NOTED = 64
"""Calls of a function that are looked at, as turns of a loop in dry runs: later ones are alike."""


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
    """Calls that differ in their types, by qualified name; those with most known data first."""

    def __init__(
        self, executed: ExecutedStatements | None = None, end: CodeType | None = None
    ) -> None:
        """Begin with the calls by statements that were executed before.

        `end` is the code that runs the program, all of which is traced in a dry run.
        """
        self._end = end
        before = executed.calls if executed is not None else {}
        self.by_function = {name: [*calls] for name, calls in before.items()}
        self._noted: Counter[str] = Counter()
        self.conditions: Conditions = ()
        """The unknown conditions under which the program runs now."""

    def note(
        self,
        name: str,
        parameters: tuple[str, ...],
        values: tuple[object, ...],
        frame: FrameType | None,
        tainted: Mapping[int, object],
    ) -> NotedCall | None:
        """Return a call of a function of the file; `None` if nothing is known, or enough.

        Args:
            name: its qualified name.
            parameters: their names, `*args` and `**kwargs` with their stars.
            values: its arguments.
            frame: that of the call.
            tainted: objects that a failed statement may have changed, by their ids.
        """
        self._noted[name] += 1
        if self._noted[name] > _NOTED:
            return None
        by_name = dict(zip(parameters, values, strict=True))
        if name.endswith(".__init__") and parameters:  # the object is what it makes
            del by_name[parameters[0]]
        file, line = code_origins.caller(frame)
        if not parameters and not file:
            return None  # a program begins with it: nothing calls it
        is_nested = "<locals>" in name
        call = captured.call_of(by_name, tainted, file, line, is_nested=is_nested)
        if call is not None:
            call.compiled = compiling.compiled(frame, self._end, call_traced.__code__)
        return call

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
            calls.sort(key=lambda c: (len(c.unknown), bool(c.conditions), -c.elements))
            same = [each for each in calls if each.definition == call.definition]
            for last in same[_CALLS:]:
                calls.remove(last)

    def report(
        self,
        recorder: Recorder,
        number: int,
        values: tuple[object, ...],
        frame: FrameType,
        tainted: Mapping[int, object],
    ) -> None:
        """Note a call that an instrumented function of the file reports by its number."""
        place = recorder.site(number)
        entry = place[1].entry if place is not None else None
        if entry is not None:
            call = self.note(entry.function, entry.parameters, values, frame, tainted)
            if call is not None and place is not None:
                call.definition = place[0]
                self.add(entry.function, call)


def unify_compiled(calls: Iterable[NotedCall]) -> None:
    """Give calls with the same types what the one of them is that is most of a program."""
    order = ("root", "inside", "part", "eager", "")
    by_types: dict[str, list[NotedCall]] = {}
    for call in calls:
        by_types.setdefault(call.types, []).append(call)
    for same in by_types.values():
        best = min((each.compiled for each in same), key=order.index)
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


def _is_of_project(function: Callable[..., object]) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code_origins.is_users_file(code.co_filename)
