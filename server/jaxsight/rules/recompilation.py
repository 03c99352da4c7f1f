"""Turn JAX's explanations of tracing cache misses into findings at the calls that miss.

`jax_explain_cache_misses` logs for each miss where the call is, which function is called, and how
the arguments differ from those before. The wording has changed between versions; the parts that are
read here are common to JAX 0.8 to 0.12.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted

FIRST_SHAPES = 3
"""How many types of one argument are reported: two may be a full batch and the last one."""

_AT = re.compile(r"TRACING CACHE MISS at (?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))? \(")
_DEFINED = re.compile(r"(?:for )?(?P<name>\S+)(?: id=\d+)? defined at (?P<place>\S+:\d+)")
_TYPES = re.compile(
    r"\* at (?P<what>.+?), now (?P<now>\S+) and before (?P<before>\S+?)(?:https|\s|$)"
)
_AGAIN = "defined on the same line"


@dataclass(frozen=True, slots=True)
class Miss:
    """One call that had to trace; `line` counts from 1."""

    file: str
    line: int
    function: str
    differs: tuple[tuple[str, str, str], ...] = ()
    """For each argument that differs: its path, its type now, its type before."""
    recreated: bool = False
    """Whether the function was re-created on the line that created one before."""
    static: bool = False
    """Whether something other than the types of arrays differs."""


@dataclass(frozen=True, slots=True)
class Recompiled:
    """A finding at a call; `line` counts from 1."""

    code: str
    file: str
    line: int
    violation: Violation


@dataclass(frozen=True, slots=True)
class ChangedWeakType:
    """A call whose argument is weakly typed, and was not before, or the other way round."""

    function: str
    argument: str
    """Its path in the arguments, `args[0]`."""


@dataclass(frozen=True, slots=True)
class Recreated:
    """A function that is re-created and traced again."""

    function: str
    times: int
    """How often it was traced."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A function that is compiled for several types of an argument, or static values."""

    function: str
    times: int
    """For how many types or values."""
    argument: str = ""
    """The path of the argument, `args[0]`; empty for static values."""
    types: tuple[str, ...] = ()
    """The types of the argument; empty for static values."""


def read(message: str) -> Miss | None:
    """Parse one message of JAX; return `None` if it does not say where the call is."""
    at = _AT.search(message)
    if at is None:
        return None
    defined = _DEFINED.search(message)
    differs = tuple((m["what"], m["now"], m["before"]) for m in _TYPES.finditer(message))
    is_known_function = "previously seen" in message
    return Miss(
        at["file"],
        int(at["line"]),
        defined["name"] if defined is not None else "",
        differs,
        recreated=_AGAIN in " ".join(message.split()),
        static=is_known_function and not differs,
    )


def find(misses: Iterable[Miss]) -> Iterator[Recompiled]:
    """Yield the calls that trace again though they need not."""
    calls: dict[tuple[str, int, str], list[Miss]] = defaultdict(list)
    for miss in misses:
        calls[miss.file, miss.line, miss.function].append(miss)
    for (file, line, function), misses_of_call in calls.items():
        for code, violation in _of_call(function, misses_of_call):
            yield Recompiled(code, file, line, violation)


def _of_call(function: str, misses: list[Miss]) -> Iterator[tuple[str, Violation]]:
    differs = [differ for miss in misses for differ in miss.differs]
    weak = next((d for d in differs if "weak_type" in d[1] and "weak_type" in d[2]), None)
    if weak is not None:
        yield "JX301", _of_weak_type(function, *weak)
    recreated = sum(miss.recreated for miss in misses)
    if recreated:
        yield "JX303", _of_object(function, recreated + 1)
    static = sum(miss.static for miss in misses)
    if static + 1 >= FIRST_SHAPES:
        yield "JX306", _of_values(function, static + 1)
    types: dict[str, set[str]] = defaultdict(set)
    for argument, now, before in differs:
        if "weak_type" not in now:
            types[argument] |= {now, before}
    for argument, types_seen in types.items():
        if len(types_seen) >= FIRST_SHAPES:
            yield "JX306", _of_types(function, argument, tuple(sorted(types_seen)))


def _of_weak_type(function: str, argument: str, now: str, before: str) -> Violation:
    return Violation(
        f"{_named(function)} is recompiled because the weak type of an argument changed",
        help="specify the dtype of the argument once, where it is created",
        notes=(f"{quoted(argument)} is {_kind(now)} here, and was {_kind(before)} before",),
        data=ChangedWeakType(function, argument),
    )


def _of_object(function: str, times: int) -> Violation:
    return Violation(
        f"{_named(function)} is re-created for this call and was traced {times} times",
        help="jit it once, outside the function or loop that calls it",
        notes=("JAX caches compiled programs by function object",),
        data=Recreated(function, times),
    )


def _of_values(function: str, count: int) -> Violation:
    return Violation(
        f"{_named(function)} is compiled for {count} values of a static argument",
        help="make the argument dynamic, or pass fewer values",
        data=Repeated(function, count),
    )


def _of_types(function: str, argument: str, types: tuple[str, ...]) -> Violation:
    few = ", ".join(types[:4]) + (", …" if len(types) > 4 else "")
    return Violation(
        f"{_named(function)} is compiled for {len(types)} types of an argument",
        help="pad the argument to a few sizes",
        notes=(f"{quoted(argument)} is {few}",),
        data=Repeated(function, len(types), argument, types),
    )


def _named(function: str) -> str:
    return quoted(function, "this function", most=36)


def _kind(text: str) -> str:
    """Return what a type in JAX's message stands for."""
    return "a Python number" if "weak_type=True" in text else "an array"
