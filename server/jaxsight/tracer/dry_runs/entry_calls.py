"""Call the functions that programs begin with, tests as frameworks call them.

That is on instances of their classes, with some of their parameters, and with their fixtures.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxsight.tracer.dry_runs.command_lines import default_config
from jaxsight.tracer.dry_runs.values.united import Value
from jaxsight.tracer.dry_runs.values.unknown import Unknown
from jaxsight.wire.messages.inputs import EntryPoint

Case = TypeVar("Case")
logger = logging.getLogger(__name__)

_ARGUMENTS = frozenset({"argv", "_argv", "unused_argv", "_", "args", "_args", "unused_args"})
"""Parameters of main functions that take the command line."""
_TURNS = 3
"""Cases of a test with a list of parameters that are run, a choice: others differ little."""
_SET_UP = ("setUp", "setup_method")
"""Methods that frameworks call before each test."""


@dataclass(frozen=True, slots=True)
class EntryCalls:
    """Calls of the functions that a program begins with."""

    entry: EntryPoint
    own_names: Collection[str]
    """The names that the file binds."""
    run: Callable[..., object]
    """Calls a function with arguments."""
    read: Callable[[str], str]
    """Returns the text of a file."""

    def call_all(self, names: Mapping[str, Value]) -> None:
        """Call the functions of the program: a test that fails is not the end of the others.

        Those with lists of parameters are called again once all have been called.
        """
        for turn in range(_TURNS):
            for function in self.entry.function.split():
                try:
                    self._call(names, function, turn)
                except Exception as error:  # noqa: BLE001 - user code
                    logger.debug("%s ended: %r", function, error)

    def _call(self, names: Mapping[str, Value], function: str, turn: int) -> None:
        """Call a function, or a test's method, with the arguments that a program would give it."""
        first, *rest = function.split(".")
        target = names[first]
        of_list = False
        if rest and isinstance(target, type):
            of_list = not hasattr(target, rest[0])
            if of_list:
                made = _made_of(target, rest[0], self.own_names)
                if turn >= len(made):
                    return
                rest = [made[turn]]
            target = _instance(target, rest[0])
            for name in _SET_UP:
                if callable(set_up := getattr(target, name, None)):
                    self.run(set_up)
        for part in rest:
            target = getattr(target, part)
        if turn and not of_list and turn >= _cases(target, self.own_names):
            return
        arguments = {} if of_list else self._arguments(target, names, turn=turn)
        self.run(target, **arguments)

    def _arguments(
        self,
        function: Callable[..., object],
        names: Mapping[str, object],
        depth: int = 4,
        turn: int = 0,
    ) -> dict[str, object]:
        """Return the arguments of a main function or a test, by its parameters; of fixtures too."""
        given = dict(_parametrized(function, turn, self.own_names))
        try:
            # Those that a wrapper gives the function are not its own.
            parameters = [*inspect.signature(function, follow_wrapped=False).parameters.values()]
            if any(each.kind is each.VAR_KEYWORD for each in parameters):
                parameters = [*inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            return {}
        for parameter in parameters:
            name = parameter.name
            is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if not is_named or name in given or parameter.default is not parameter.empty:
                continue
            fixture = _fixture_of(names.get(name))
            if fixture is not None and depth:
                try:
                    made = fixture(**self._arguments(fixture, names, depth - 1))
                    # What follows the `yield` of a fixture is for after the test.
                    given[name] = next(made) if inspect.isgenerator(made) else made
                except Exception:  # noqa: BLE001 - user code
                    given[name] = Unknown()
            elif name in _ARGUMENTS:
                given[name] = [self.entry.file]
            elif name == "config":
                given[name] = default_config(self.entry.file, self.read)
            else:
                given[name] = Unknown()
        return given


def _instance(kind: type, method: str) -> object:
    """Return an instance of a class of tests."""
    import unittest

    try:
        return kind(method) if issubclass(kind, unittest.TestCase) else kind()
    except Exception:  # noqa: BLE001 - user code, or a base class that is not installed
        return object.__new__(kind)


def _made_of(kind: type, name: str, wanted: Collection[str]) -> Sequence[str]:
    """Return some of the methods that `absl` and `chex` make of one with parameters, by name."""
    made: dict[str, str] = {}
    for each, value in vars(kind).items():
        code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
        if code is not None and code.co_name == name:
            made[each] = f"{each} {getattr(value, '__doc__', '')}"
    return _telling([*made], [*made.values()], wanted)


def _telling(
    every: Sequence[Case], texts: Sequence[str], wanted: Collection[str]
) -> Sequence[Case]:
    """Return the cases that are tried, at most `_TURNS`: of other names, or far from each other.

    Args:
        every: the cases.
        texts: their parameters as text.
        wanted: the names of functions that they may be about.
    """
    left = {at: {*re.findall(r"\w+", text)} & {*wanted} for at, text in enumerate(texts)}
    chosen: list[int] = []
    for turn in range(min(_TURNS, len(every))):
        best = max(left, key=lambda at: len(left[at]))
        if not left[best]:
            best = min(left, key=lambda at: abs(at - turn * len(every) // _TURNS))
        found = left.pop(best)
        left = {at: names - found for at, names in left.items()}
        chosen.append(best)
    return [every[at] for at in chosen]


def _cases(function: object, wanted: Collection[str]) -> int:
    """Return how many cases of `pytest.mark.parametrize` a function is called with."""
    return max((len(values) for _, values in _marks(function, wanted)), default=1)


def _parametrized(
    function: object, turn: int, wanted: Collection[str]
) -> Iterator[tuple[str, object]]:
    """Yield the values of `pytest.mark.parametrize` in a turn."""
    for names, values in _marks(function, wanted):
        value = values[turn % len(values)]
        is_set = type(value).__name__ == "ParameterSet"  # what `pytest.param` returns
        case = getattr(value, "values", ()) if is_set else value if len(names) > 1 else [value]
        if isinstance(case, Iterable):
            yield from zip(names, case, strict=False)


def _marks(
    function: object, wanted: Collection[str]
) -> Iterator[tuple[list[str], Sequence[object]]]:
    """Yield the names and the cases that are tried of each `pytest.mark.parametrize`."""
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(getattr(mark, "args", ())) > 1:
            names, values = mark.args[:2]
            listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
            every = [*values]
            if tried := _telling(every, [*map(repr, every)], wanted):
                yield listed, tried


def _fixture_of(value: object) -> Callable[..., object] | None:
    """Return the function of a pytest fixture, if a value is one."""
    named = "fixture" in type(value).__name__.lower()
    if not named and not hasattr(value, "_pytestfixturefunction"):
        return None
    # Versions of pytest keep the function in different attributes.
    inner = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    pytest_wrapped = getattr(value, "__pytest_wrapped__", None)
    function: Callable[..., object] | None = getattr(pytest_wrapped, "obj", inner)
    return function
