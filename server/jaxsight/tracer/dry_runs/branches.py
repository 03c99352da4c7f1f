"""Conditions that are unknown in a dry run: each branch runs, from the state before.

What is equal after all branches that go on is kept, and anything else is unknown. A branch that
returns, raises or leaves its loop ends only itself, unless all of them do.
"""

from __future__ import annotations

import contextlib
import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import jax

from jaxsight.tracer.compat import traces
from jaxsight.tracer.dry_runs.noted_calls import NotedCalls
from jaxsight.tracer.dry_runs.values.united import (
    Value,
    changeable,
    content_of,
    put,
    united,
    values_of,
)
from jaxsight.tracer.dry_runs.values.unknown import (
    Rest,
    SomeItems,
    Unknown,
    UnknownValueError,
    is_size,
    is_unknown,
    shaped_like,
    sizes,
)
from jaxsight.tracer.failures import message
from jaxsight.tracer.interruptions import CancelledByServer, TookTooLong
from jaxsight.tracer.isolation.refusals import RefusedError

_OPEN = 6
"""Unknown conditions inside of each other, across calls, all branches of which run, a choice: so
many double the work up to 64 times. Others fail, and what depends on them is unknown.
"""
_RECURSIONS = 3
"""Calls of a function inside of itself after which a branch that returns decides for all."""
_OURS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    UnknownValueError,
    RefusedError,
)
"""Errors that a program has because its arrays have no values, or its effects are refused."""
_ABOUT_US = re.compile(r"Tracer|\bUnknown\b|<unknown>")
"""Messages about a tracer, or about something unknown."""
ENDING = (CancelledByServer, TookTooLong, GeneratorExit, MemoryError)
"""Errors that end the whole run or the generator, not only a branch or a statement."""
_UNBOUND = object()
"""Stands for the value of a variable that is not bound."""
_LEAVING = ("break", "continue", "return", "raise")
"""How branches leave, in the order in which one is chosen where they differ."""
_Statement = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[int, int]]
"""A statement: the conditions of its branches, for people; the variables that it binds; variables
with objects that it may change; numbers of the loop and of the `try` around it, 0 without one.
"""
_Thunk = Callable[[], object]
_OPERATORS: Mapping[str, Callable[[Value, Value], object]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le,
    "Gt": operator.gt, "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
    "FloorDiv": operator.floordiv, "Mod": operator.mod,
}  # fmt: skip


def is_ours(error: BaseException) -> bool:
    """Return whether a program has an error because it runs dry."""
    ours = isinstance(error, _OURS) or hasattr(error, "absence")
    return ours or _ABOUT_US.search(message(error)) is not None


class LeftBranch(BaseException):
    """A branch is left, by a statement that would leave the function or the loop around it."""

    def __init__(self, how: str, value: object) -> None:
        self.how, self.value = how, value


class ConstantBranch(contextlib.nullcontext[None]):
    """The branches of a statement whose condition is known: one of them runs."""

    forks = False

    def __init__(self, index: int) -> None:
        super().__init__()
        self._index = index

    def enters(self, index: int) -> bool:
        """Return whether a branch runs."""
        return index == self._index


_KNOWN = (ConstantBranch(0), ConstantBranch(1))


@dataclass(slots=True)
class _End:
    """How a branch ended: as in `_LEAVING`, or empty; and its variables and objects then."""

    how: str
    value: object
    names: dict[str, object]
    contents: list[object]


def _is_caught(end: _End) -> bool:
    """Return whether handlers of a `try` may catch what a branch raises."""
    error = end.value
    kind = error if isinstance(error, type) else type(error)
    return end.how == "raise" and issubclass(kind, Exception)


class Fork:
    """The branches of a statement whose condition is unknown: all of them run."""

    forks = True

    def __init__(self, branches: Branches, frame: FrameType, *statement: *_Statement) -> None:
        conditions, names, roots, around = statement
        self.code, self.line, self.frame = frame.f_code, frame.f_lineno, id(frame)
        self.condition, self.around = conditions[0], around
        self.leaves, self.result = "", None
        self._branches, self._conditions, self._names = branches, conditions, names
        self._ends: list[_End] = []
        self._now = self._before = values_of(frame, names)
        self._objects = changeable(values_of(frame, roots).values())
        self._contents = [*map(content_of, self._objects)]

    def enters(self, index: int) -> bool:
        """Restore the state before for a branch, all of which run."""
        self.condition = self._conditions[index]
        self._now = self._before
        for each, content in zip(self._objects, self._contents, strict=True):
            put(each, content)
        return True

    def value(self, name: str) -> object:
        """Return what a variable is now.

        Raises:
            NameError: it is not bound.
        """
        if name not in self._now:
            raise NameError(name)
        return self._now[name]

    def __enter__(self) -> None:
        self._branches.forks.append(self)
        self._branches.note_condition()

    def __exit__(self, _kind: object, error: object, _traceback: object) -> bool:
        branches = self._branches
        del branches.forks[branches.forks.index(self) :]
        branches.note_condition()
        if isinstance(error, ENDING):
            return False
        frame = sys._getframe(1)
        left = (error.how, error.value) if isinstance(error, LeftBranch) else ("raise", error)
        contents = [*map(content_of, self._objects)]
        how, value = ("", None) if error is None else left
        self._ends.append(_End(how, value, values_of(frame, self._names), contents))
        return True

    def end(self) -> None:
        """Unite the branches that go on; leave if none does.

        Raises:
            Exception: that of a branch, if all raise.
        """
        kinds = {end.how for end in self._ends}
        kind = next((each for each in _LEAVING if each in kinds), "")
        if "" in kinds and not (kind == "return" and self._recurses(sys._getframe(1))):
            kind = ""
        ends = [end for end in self._ends if end.how == kind]
        is_caught = self.around[1] > 0 and any(map(_is_caught, self._ends))
        if "return" in kinds and (kind != "return" or is_caught):
            values = [end.value for end in self._ends if end.how == "return"]
            self._branches.returned.setdefault(self.frame, []).extend(values)
        if kinds & {"break", "continue"} and len(kinds) > 1:
            others = [end for end in self._ends if end.how in ("break", "continue", kind)]
            self._branches.cut(self.frame, self.around[0], self._differing(others))
        if is_caught and (len(kinds) > 1 or self._differing(self._ends)):
            raise UnknownValueError("its condition is unknown")
        if kind == "raise":
            error: Value = ends[0].value
            self._branches.leave_from(self.frame, "raise", self.around[1], error)
            raise error
        self.leaves, self.result = kind, united([end.value for end in ends])
        changed = self._unite_objects([end.contents for end in ends])
        self._now = {}
        for name in {name for end in ends for name in end.names}:
            values = [end.names.get(name, _UNBOUND) for end in ends]
            is_known = not any(each is _UNBOUND or id(each) in changed for each in values)
            self._now[name] = united(values) if is_known else Unknown()

    def _unite_objects(self, contents: list[list[object]]) -> set[int]:
        """Give objects what branches leave in them; return the ids of those that are unknown."""
        changed: dict[int, object] = {}
        for index, each in enumerate(self._objects):
            every: list[Value] = [of_end[index] for of_end in contents]
            if not isinstance(each, dict | list | set):
                names = {name: Unknown() for attributes in every for name in attributes}
                every = [{**names, **attributes} for attributes in every]
            content = united(every)
            if is_unknown(content):
                changed[id(each)] = each
                content = every[-1]
            put(each, content)
        self._branches.tainted.update(changed)
        for each in self._objects if changed else ():
            content = content_of(each)
            if not isinstance(content, set):
                pairs = content.items() if isinstance(content, dict) else enumerate(content)
                for key, part in [*pairs]:
                    content[key] = Unknown() if id(part) in changed else part
                put(each, content)
        return {*changed}

    def _differing(self, ends: list[_End]) -> set[str]:
        """Return the variables that differ at the ends of branches, or whose objects do."""
        by_object = zip(self._objects, *(end.contents for end in ends), strict=True)
        objects = {id(each) for each, *every in by_object if united(every) is not every[-1]}
        by_name = {name: [end.names.get(name, _UNBOUND) for end in ends] for name in self._names}
        return {
            name
            for name, values in by_name.items()
            if any(each is _UNBOUND or id(each) in objects for each in values)
            or united(values) is not values[-1]
        }

    def _recurses(self, frame: FrameType | None) -> bool:
        depth = 0
        while frame is not None and depth < _RECURSIONS:
            depth += frame.f_code is self.code
            frame = frame.f_back
        return depth == _RECURSIONS


Manager = contextlib.AbstractContextManager[object]


@dataclass(slots=True)
class Surviving(contextlib.AbstractContextManager[object]):
    """A context manager; if it cannot be entered, its value is unknown."""

    failed: Callable[[BaseException], None]
    """Called with the error, which it raises if it is not to be survived."""
    make: Callable[[], Manager]
    template: object
    """The structure of its target."""
    _entered: Manager | None = None

    def __enter__(self) -> object:
        try:
            manager = self.make()
            value = manager.__enter__()
        except BaseException as error:  # noqa: BLE001 - user code
            self.failed(error)
            return shaped_like(self.template)
        self._entered = manager
        return shaped_like(self.template) if is_unknown(value) else value

    def __exit__(self, *error: object) -> bool | None:
        # The context sees that its body ends.
        shown: Any = (None, None, None) if isinstance(error[1], LeftBranch) else error
        return self._entered.__exit__(*shown) if self._entered is not None else None


@dataclass
class Branches:
    """What rewritten code calls at conditions; outside of a dry run, it changes nothing."""

    forks: list[Fork] = field(default_factory=list)
    """The unknown conditions whose branches run, the innermost last."""
    tainted: dict[int, object] = field(default_factory=dict)
    """Objects that a failed statement may have changed, by their ids."""
    returned: dict[int, list[object]] = field(default_factory=dict)
    """What branches returned of functions that go on, by the ids of their frames."""
    is_complete: bool = False
    """Whether all that the program did is what it does without us, until now."""
    calls: NotedCalls = field(default_factory=NotedCalls)
    """Calls of the file's functions, by qualified name."""
    _outer: object = None
    _turned: dict[tuple[int, int], list[dict[str, object]]] = field(default_factory=dict)
    """The variables after the last two iterations, by the frame and the number of the loop."""
    _cut: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    """Loops that were left early, with the variables that depend on where."""

    @property
    def is_active(self) -> bool:
        """Whether the current code is that of a program, not of a function that JAX traces."""
        return self._outer is not None and traces.current() is self._outer

    def note_condition(self) -> None:
        """Note which unknown conditions hold, for calls."""
        texts = ((f.condition, f.code.co_filename, f.line) for f in self.forks)
        self.calls.conditions = tuple(dict.fromkeys(texts))

    def cut(self, frame: int, loop: int, differing: set[str]) -> None:
        """Note that it is unknown how many turns a loop has, or which variables differ then.

        Raises:
            UnknownValueError: nothing notes what it changes.
        """
        if (frame, loop) not in self._turned:
            raise UnknownValueError("its condition is unknown")
        self._cut[frame, loop] = self._cut.get((frame, loop), frozenset()) | differing

    def leave_from(self, frame: int, how: str, around: int, value: object) -> None:
        """Leave the innermost branch that runs, if it is in a frame and in what is left."""
        fork = self.forks[-1] if self.forks else None
        if fork is None or fork.frame != frame:
            return
        if how == "return" or fork.around[how == "raise"] == around:
            raise LeftBranch(how, value)

    # Called by rewritten code, with short names.

    def untested(self, error: BaseException) -> object:
        """Return something unknown for a condition that failed because of us.

        Raises:
            BaseException: the error, if it is the program's.
        """
        if not self.is_active or not isinstance(error, Exception) or not is_ours(error):
            raise error
        return Unknown()

    def truth(self, value: object) -> bool | None:
        """Return whether a condition holds; `None` if that is unknown."""
        if value is True or value is False:
            return value
        if self.is_active and (
            is_size(value) or type(value) in (Rest, SomeItems) or id(value) in self.tainted
        ):
            return None
        try:
            return bool(value)
        except Exception as error:  # noqa: BLE001 - an array has no value here
            self.untested(error)
            return None

    def fork(self, test: object, *statement: *_Statement) -> ConstantBranch | Fork:
        """Return the branches of a statement, given its condition."""
        truth = self.truth(test)
        if truth is not None:
            return _KNOWN[0 if truth else 1]
        frame = sys._getframe(1)
        self.is_complete = False
        place = frame.f_code, frame.f_lineno
        is_inside_itself = any((fork.code, fork.line) == place for fork in self.forks)
        if is_inside_itself or len(self.forks) == _OPEN:
            raise UnknownValueError("its condition is unknown")
        return Fork(self, frame, *statement)

    def certain(self, subject: object) -> object:
        """Return the subject of a `match`.

        Raises:
            UnknownValueError: it is unknown, and so is which branch runs.
        """
        if self.is_active and is_unknown(subject):
            raise UnknownValueError("its subject is unknown")
        return subject

    def leave(self, how: str, around: int, value: object = None) -> object:
        """Leave a branch, if one of several runs; return the value if none does.

        Args:
            how: how, as in `_LEAVING`.
            around: the number of the loop or of the `try` that is left.
            value: what is returned or raised.
        """
        frame = id(sys._getframe(1))
        self.leave_from(frame, how, around, value)
        others = self.returned.pop(frame, ()) if how == "return" else ()
        return united([*others, value])

    def chosen(self, test: _Thunk, first: _Thunk, second: _Thunk) -> object:
        """Return the value of a conditional expression."""
        truth = self._tested(test)
        if truth is not None:
            return first() if truth else second()
        self.is_complete = False
        values = [self._evaluated(first), self._evaluated(second)]
        return united([value for value in values if value is not _FAILED] or [Unknown()])

    def logical(self, decides: bool, *parts: _Thunk) -> object:
        """Return the value of `or`, which something true decides, or of `and`."""
        *first, last = parts
        is_known = True
        for part in first:
            value = part() if is_known else self._evaluated(part)
            truth = self.truth(value) if value is not _FAILED else None
            if truth is decides:
                return value if is_known or value is truth else Unknown()
            is_known = is_known and truth is not None
        if is_known:
            return last()
        value = self._evaluated(last)
        return value if value is decides else Unknown()

    def holds(self, test: _Thunk) -> object:
        """Return the condition of an `assert`; an unknown one holds."""
        if not self.is_active:
            return test()
        truth = self._tested(test)
        self.is_complete = self.is_complete and truth is not None
        return truth is None or truth

    def compared(self, how: str, left: object, right: object) -> object:
        """Return whether two values compare so; unknown if it is for sizes or something unknown."""
        if self.is_active and how in ("Is", "IsNot", "In", "NotIn"):
            if left is not right and (type(left) is Unknown or type(right) is Unknown):
                return Unknown()
        elif self.is_active and not _is_decided(left, right):
            return Unknown()
        return _OPERATORS[how](left, right)

    def divided(self, how: str, left: Value, right: Value) -> object:
        """Return a quotient without its rest, or the rest; that of an unknown size is unknown."""
        result = _OPERATORS[how](left, right)
        if type(result) is not int or not self.is_active or not is_size(left):
            return result
        if how != "Mod" and is_size(result):
            return result
        sizes.divided(left, right)
        return Rest(result) if how == "Mod" else Unknown()

    def repeated(self, left: Value, right: Value) -> object:
        """Return a sequence repeated; something unknown where it is unknown how often."""
        if not self.is_active or not (is_size(left) or is_size(right)):
            return left * right
        number = len(right) * left if is_size(left) else len(left) * right
        return sizes.of_length(number)

    def _tested(self, test: _Thunk) -> bool | None:
        try:
            value = test()
        except Exception as error:  # noqa: BLE001 - user code
            value = self.untested(error)
        return self.truth(value)

    def _evaluated(self, expression: _Thunk) -> object:
        """Return the value of an expression that may not be evaluated; `_FAILED` if it fails."""
        try:
            return expression()
        except Exception:  # noqa: BLE001 - user code
            return _FAILED


_FAILED = object()


def _is_decided(left: object, right: object) -> bool:
    """Return whether a comparison has the same result for all values of unknown sizes."""
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        pairs = [*zip(left, right, strict=True)]
        decided = [_is_decided(*pair) for pair in pairs]
        differs = any(d and a != b for d, (a, b) in zip(decided, pairs, strict=True))
        return all(decided) or differs
    if Rest in (type(left), type(right)):
        return False
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return left == right if numbers and (is_size(left) or is_size(right)) else True
