"""What rewritten code calls while a program runs dry."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import jax

from jaxsight.recording.observing.functions import parameters
from jaxsight.rewriting.nodes import DRY
from jaxsight.rewriting.rewriter import LOCALS
from jaxsight.tracer.compat import traces
from jaxsight.tracer.dry_runs import captured
from jaxsight.tracer.dry_runs.branches import (
    ENDING,
    Branches,
    LeftBranch,
    Manager,
    Surviving,
    is_ours,
)
from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.command_lines import starts
from jaxsight.tracer.dry_runs.noted_calls import NotedCalls, call_traced, called_by, compiled_as
from jaxsight.tracer.dry_runs.program_errors import met_unknown, program_error
from jaxsight.tracer.dry_runs.values import loaders
from jaxsight.tracer.dry_runs.values.unknown import (
    SomeItems,
    Unknown,
    UnknownValueError,
    fills_memory,
    has_size,
    has_unknown,
    is_countless,
    is_unknown,
    shaped_like,
    sizes,
    some_items,
)
from jaxsight.tracer.failures import message
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.states.inside import is_in_haiku
from jaxsight.wire.observations import ProgramError

logger = logging.getLogger(__name__)

Tried = TypeVar("Tried")
_Args = tuple[object, ...]
_Kwargs = dict[str, object]

_TURNS = 64
"""Maximum number of iterations of a loop: more than a model has layers."""
_LOOP_SECONDS = 1.0
"""Seconds after which a loop is left, so that one loop does not use up a program's time."""
_END = object()
_COUNTING = (len, enumerate, zip, list, tuple, set, frozenset, dict, sorted, map, filter)
"""Builtins whose result has a size, or as many items as something else."""
_TRACED = re.compile(r"while tracing the function (?!program at )")
"""What JAX says of an error in a function that the program itself has traced, by `jit` and others.

The dry run traces `program` (`programs.py`).
"""
_FED = 8
"""Types of arrays that models are called with: the first ones tell what the data is."""


class WithoutValuesError(BaseException):
    """An error of a program that it has because it runs dry: its own handlers are not meant."""


class DryRuntime(Branches):
    """The state of the dry runs of this process; outside of one, it changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: dict[str, None] = {}
        """The qualified names of the programs' functions that ran."""
        self.fed: dict[str, None] = {}
        """Types of the arrays that models are called with."""
        self.imported: Callable[[], None] = lambda: None
        """Called after imports, to rewrite the functions of new modules."""
        self.own: set[CodeType] = set()
        """The codes of the file's functions."""
        self.original: dict[str, CodeType] = {}
        """The codes of the file's nested functions before they were rewritten."""
        self.texts: list[str] = []
        """The statements of the file."""
        self.errors: list[ProgramError] = []
        """What ended the first statement that did not complete, if that is the program's own."""
        self._file = ""
        self._functions: dict[int, object] = {}
        self._decorated: dict[int, object] = {}
        self._differing: frozenset[str] = frozenset()
        self._changing: set[str] = set()
        self._unlisted: set[int] = set()
        """Comprehensions with an unknown number of items, by their place."""

    def install(self) -> None:
        """Make this object available to rewritten code."""
        setattr(builtins, DRY, self)

    def begin(
        self, file: str, calls: NotedCalls, imported: Callable[[], None], texts: list[str]
    ) -> None:
        """Begin another run for a file, which adds to calls and tells of imports.

        It looks for the error that ends the program, among the file's statements `texts`.
        """
        self._file, self.calls, self.imported, self.texts = file, calls, imported, texts
        self.ran, self.fed, self.own, self.original, self.errors = {}, {}, set(), {}, []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run a program dry under the current trace."""
        sizes.clear()
        self.forks.clear()
        self.returned.clear()
        outer = self._outer, self.tainted, self._turned, self._cut
        self._outer, self.tainted, self._turned, self._cut = traces.current(), {}, {}, {}
        placeholders.unknown = Unknown
        try:
            yield
        finally:
            placeholders.unknown = None
            self._outer, self.tainted, self._turned, self._cut = outer
            self._functions.clear()
            self._decorated.clear()

    def is_outer(self, trace: object) -> bool:
        """Return whether a trace is that of the program, which would run op by op."""
        return self._outer is not None and trace is self._outer

    # Called by rewritten code, with short names.

    @property
    def unknown(self) -> Unknown:
        """Something unknown, another one each time."""
        return Unknown()

    def failed(self, error: BaseException) -> None:
        """Let the program survive an error, unless it is not ours to catch."""
        if not self.is_active or isinstance(error, (*ENDING, LeftBranch)):
            raise error
        # A branch that exits is not the end of the others.
        if isinstance(error, SystemExit) and self.forks:
            is_here = self.forks[-1].frame == id(sys._getframe(1))
            raise LeftBranch("raise", error) if is_here else error
        logger.debug("a statement failed: %r", error)
        if error.__traceback__ is not None and not isinstance(error, UnknownValueError):
            tried = error.__traceback__
            sizes.failed(message(error), (tried.tb_frame.f_code.co_filename, tried.tb_lineno))
        if self.is_complete:
            self.is_complete = False
            from_us = is_ours(error) and not _TRACED.search(message(error))
            if not from_us and not met_unknown(error):
                found = program_error(error, self.texts)
                self.errors += [found] if found is not None and found.is_certain else []
        # The frames of the traceback hold the dry run's arrays.
        error.__traceback__ = None

    def judged(self, error: BaseException) -> BaseException:
        """Return an error for the program's own handlers, or one that they do not catch."""
        if self.is_active and is_ours(error):
            return WithoutValuesError(error)
        return error

    def state(self, value: object) -> object:
        """Return what a failed `state = step(state, …)` leaves: an object of many parts stays."""
        is_plain = isinstance(value, bool | int | float | complex | str)
        return Unknown() if is_plain or hasattr(value, "shape") else value

    def updated(self, value: object, before: Callable[[], object]) -> object:
        """Return the new value of a variable; if it is unknown, what is left of the old one."""
        if not is_unknown(value) or not self.is_active:
            return value
        try:
            return self.state(before())
        except NameError:
            return value

    def changed(self, value: object) -> object:
        """Return what a failed statement leaves of an object that it may have changed."""
        if isinstance(value, list | dict | set | bytearray):
            self.tainted[id(value)] = value
            return Unknown()
        return value

    def call(self, function: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        """Call a function; return what is known of its result."""
        if self._outer is not None:
            self._watch_call(function, args, kwargs)
        if not self.is_active:
            return function(*args, **kwargs)
        if started := [*starts(function, args)]:
            return [self.call(each, **given) for each, given in started][-1]
        if is_unknown(function):
            frame = sys._getframe(1)
            # What the file's own statements hand on was traced before names were bound again.
            if (frame.f_code.co_name, frame.f_code.co_filename) != ("<module>", self._file):
                call_traced(args, kwargs)
        # By identity: an object that is called may define `==`.
        elif any(function is each for each in _COUNTING) and any(map(is_countless, args)):
            return self._counted(function, args, kwargs)
        elif any(map(has_unknown, (*args, *kwargs.values()))):
            args, kwargs = sizes.with_sizes(function, args, kwargs)
            if self._note_partial(function, args, kwargs):
                self.is_complete = False
                return Unknown()
        return self._made(function, args, kwargs)

    def _watch_call(self, function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> None:
        """Note the arrays that a model is called with.

        Raises:
            UnknownValueError: the call would need values for an unknown number of things.
        """
        if len(self.fed) < _FED:
            self.fed |= dict.fromkeys(captured.fed_to(function, args))
        is_sized = any(map(has_size, (*args, *kwargs.values())))
        if is_sized and (function is range or fills_memory(function, args)):
            raise UnknownValueError("its length is unknown")

    def _made(self, function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> object:
        """Return the result of a call, or what stands for it if data is not there."""
        # It stays false if a stand-in is returned.
        complete, self.is_complete = self.is_complete, False
        if (made := loaders.of_arrays(function, args, kwargs)) is not None:
            return made
        if (load := loaders.loader(function)) is not None:
            return load(*args, **kwargs)
        self.is_complete = complete
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if placeholders.absence_of(error) is None:
                raise
            self.is_complete = False
            return loaders.of_missing(function, args, kwargs)

    def unpacked(self, value: object, count: int) -> object:
        """Return what an assignment gives its `count` targets."""
        if not self.is_active or not is_unknown(value):
            return value
        return (value if isinstance(value, Unknown) else Unknown()).unpacked(count)

    def _counted(self, function: Any, args: _Args, kwargs: _Kwargs) -> object:
        """Return what a builtin makes of unknown many things: a size, or unknown many items."""
        counts, loops = function is len, function is enumerate or function is zip
        if counts and is_unknown(args[0]):
            self.is_complete = False
            data = args[0]
            return data.axis_size(0) if isinstance(data, Unknown) else sizes.of(data)
        if loops:
            return SomeItems(function(*map(some_items, args), **kwargs))
        return function(*args, **kwargs) if counts else Unknown()

    def iterate(self, comprehension: int, items: object) -> object:
        """Return the items of a comprehension; note if it is unknown how many there are.

        Raises:
            UnknownValueError: of a generator, whose number is 0.
        """
        items = some_items(items) if self.is_active else items
        if self.is_active and (is_unknown(items) or type(items) is SomeItems):
            if not comprehension:
                raise UnknownValueError("its length is unknown")
            self._unlisted.add(comprehension)
        return items

    def listed(self, comprehension: int, value: object) -> object:
        """Return the value of a comprehension, unknown if its length is."""
        if comprehension not in self._unlisted:
            return value
        self._unlisted.discard(comprehension)
        return Unknown()

    def _note_partial(self, wrapper: Callable[..., object], args: _Args, kwargs: _Kwargs) -> bool:
        """Note a call of a function of the file that JAX would trace; return whether it is one."""
        called = called_by(wrapper, args, kwargs)
        if called is None or called[0] is wrapper:
            return False
        function, args, kwargs = called
        number = next((n for n, f in self._functions.items() if f is function), None)
        code = function.__code__
        if number is None and code not in self.own:
            return False
        names = parameters(code)
        values: dict[str, object] = dict(zip(names, args, strict=False))
        values |= {key: value for key, value in kwargs.items() if key in names}
        frame = sys._getframe(2)
        call = captured.call_of(values, self.tainted, frame.f_code.co_filename, frame.f_lineno)
        call.compiled = compiled_as(wrapper, function)
        self._add(code.co_qualname, call, number)
        return True

    def began(self, name: str) -> None:
        """Note that a function of the program runs outside of transformations."""
        self.returned.pop(id(sys._getframe(1)), None)
        if self.is_active and not is_in_haiku():
            self.ran[name] = None

    def entered(self, number: int, frame: FrameType) -> None:
        """Note a call of a nested function of rewritten code."""
        name = frame.f_code.co_qualname
        # One that has its own code again was noted.
        is_new = number in self._functions and self.original.get(name) is not frame.f_code
        if self._outer is not None and is_new and (call := self.calls.note(frame, self.tainted)):
            self._add(name, call, number)

    def _add(self, name: str, call: NotedCall, number: int | None) -> None:
        if number is not None:
            call.function = self._functions.get(number)
            call.decorated = self._decorated.get(number)
            if LOCALS in name and not self._keeps_function(call):
                return
        self.calls.add(name, call)

    def _keeps_function(self, call: NotedCall) -> bool:
        """Return whether a nested function can be traced after the dry run."""
        if not isinstance(call.function, FunctionType):
            return False
        function = call.function
        original = self.original.get(function.__qualname__)
        if original is not None and original.co_freevars == function.__code__.co_freevars:
            # Restore the code as written: it is traced without this runtime.
            function.__code__ = original
        return call.keep(function)

    def defined(self, number: int) -> Callable[[object], object]:
        """Return a decorator that notes a nested function of the file, whose calls are kept."""

        def note(function: object) -> object:
            if self._outer is not None:
                self._functions[number] = function
                self._decorated.pop(number, None)
            return function

        return note

    def decorator(self, make: Callable[[], object]) -> object:
        """Return a decorator; one that is not there keeps the function for who calls the result."""
        try:
            made = make()
            absence = placeholders.of(made)
        except Exception as error:
            absence = placeholders.absence_of(error)
            if absence is None or not self.is_active:
                raise
        if absence is None:
            return made
        return lambda function: placeholders.MissingObject(absence, function, is_module=False)

    def decorated(self, number: int, value: object) -> None:
        """Note what a nested function has become by its decorators."""
        if number in self._functions and value is not self._functions[number]:
            self._decorated[number] = value

    def turns(
        self,
        loop: int,
        items: Callable[[], Iterable[object]],
        template: object,
        names: tuple[str, ...],
    ) -> Iterator[object]:
        """Yield the items of a loop; in a dry run only the first ones.

        Args:
            loop: its number in the file.
            items: returns what it iterates over.
            template: the structure of its target.
            names: the variables in it.
        """
        if not self.is_active:
            yield from items()
            return
        frame = sys._getframe(1)
        place = id(frame), loop
        self._turned[place] = [_signatures(frame.f_locals, names)]
        self._cut.pop(place, None)
        begin = time.monotonic()
        unlisted: Iterable[object] = [Unknown()]
        every: Iterable[object] = some_items(self._tried(items, unlisted))
        iterator: Iterator[object] = self._tried(lambda: iter(every), iter([Unknown()]))
        if type(every) is SomeItems:
            self._cut[place] = frozenset()
        for number in itertools.count():
            item = self._tried(lambda: next(iterator, _END), _END if number else Unknown())
            if item is _END:
                return
            # Not before two iterations, which show what each one changes.
            late = number > 1 and time.monotonic() - begin > _LOOP_SECONDS
            if is_unknown(item) or number == _TURNS or late:
                self._cut.setdefault(place, frozenset())
            if number == _TURNS or late or (number and is_unknown(item)):
                return
            yield shaped_like(template) if is_unknown(item) else item

    def _tried(self, function: Callable[[], Tried], otherwise: Tried) -> Tried:
        """Return the result of a function, or something else if it fails."""
        try:
            return function()
        except BaseException as error:  # noqa: BLE001 - user code
            self.failed(error)
            return otherwise

    def endless(self) -> Iterator[None]:
        """Return the items of a `while` loop."""
        return itertools.repeat(None)

    def goes_on(self, condition: object, loop: int) -> bool:
        """Return whether a `while` loop has another iteration; one if that is unknown."""
        truth = self.truth(condition)
        place = id(sys._getframe(1)), loop
        if truth is None:
            self.is_complete = False
            truth = place not in self._cut
            self._cut.setdefault(place, frozenset())
        if not truth:
            del self._turned.get(place, [])[1:]  # what follows is noted as what was before
        return truth

    def turned(self, loop: int, names: dict[str, object], of: tuple[str, ...]) -> None:
        """Note the variables after an iteration."""
        notes = self._turned.get((id(sys._getframe(1)), loop))
        if notes is not None and self.is_active:
            notes.append(_signatures(names, of))
            del notes[:-2]

    def was_cut(self, loop: int) -> bool:
        """Return whether a loop was left early, and note which variables it changes."""
        place = id(sys._getframe(1)), loop
        if place not in self._cut:
            return False
        self._differing = self._cut.pop(place)
        self.is_complete = False
        before, last = ({}, {}, *self._turned.pop(place, []))[-2:]
        self._changing = {n for n in last if n not in before or before[n] != last[n]}
        return True

    def settled(self, name: str, value: object) -> object:
        """Return a variable after a loop that was left: unknown, if each iteration changes it."""
        if name in self._differing:
            return Unknown()
        return self.state(self.changed(value)) if name in self._changing else value

    def importing(self) -> Manager:
        """Return a context in which the arrays of imported modules have values."""
        return jax.ensure_compile_time_eval() if self.is_active else contextlib.nullcontext()

    def context(self, manager: Callable[[], Manager], template: object) -> Manager:
        """Return a context manager; one that cannot be entered has an unknown value."""
        return Surviving(self.failed, manager, template) if self.is_active else manager()


def _signatures(names: Mapping[str, object], of: tuple[str, ...]) -> dict[str, object]:
    return {name: captured.signature(names[name]) for name in of if name in names}
