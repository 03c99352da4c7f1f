"""What JAX says of functions that it traces again, read and turned into findings at the calls that make it so.

`jax_explain_cache_misses` tells of each miss where the call is, which function it is of, and how the arguments differ from those before. The wording has changed between
versions; what is read here is common to JAX 0.8 to 0.12.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FIRST_SHAPES = 3
"""From how many types of one argument on a call is told of: two are a full batch and the rest."""

_AT = re.compile(r"TRACING CACHE MISS at (?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))? \(")
_DEFINED = re.compile(r"(?:for )?(?P<name>\S+)(?: id=\d+)? defined at (?P<place>\S+:\d+)")
_TYPES = re.compile(
    r"\* at (?P<what>.+?), now (?P<now>\S+) and before (?P<before>\S+?)(?:https|\s|$)"
)
_AGAIN = "defined on the same line"


@dataclass(frozen=True, slots=True)
class Miss:
    """One call that had to trace: `file` and `line` (from 1) of the call, the function, and how its arguments differed."""

    file: str
    line: int
    function: str
    differs: tuple[tuple[str, str, str], ...] = ()
    """What differs, its type now, and before."""
    anew: bool = False
    """The function is made anew on the line that made one before."""
    static: bool = False
    """Something besides the types of arrays differs."""


@dataclass(frozen=True, slots=True)
class Recompiled:
    """A finding at a call."""

    code: str
    file: str
    line: int
    message: str
    help: str = ""


def read(message: str) -> Miss | None:
    """One message of JAX's; `None` when it does not say where the call is."""
    at = _AT.search(message)
    if at is None:
        return None
    defined = _DEFINED.search(message)
    differs = tuple((m["what"], m["now"], m["before"]) for m in _TYPES.finditer(message))
    seen = "previously seen" in message
    return Miss(
        at["file"],
        int(at["line"]),
        defined["name"] if defined is not None else "a function",
        differs,
        anew=_AGAIN in " ".join(message.split()),
        static=seen and not differs,
    )


def find(misses: Iterable[Miss]) -> Iterator[Recompiled]:
    """The calls that trace again though they need not."""
    calls: dict[tuple[str, int, str], list[Miss]] = defaultdict(list)
    for miss in misses:
        calls[miss.file, miss.line, miss.function].append(miss)
    for (file, line, function), found in calls.items():
        yield from _of_call(file, line, function, found)


def _of_call(file: str, line: int, function: str, misses: list[Miss]) -> Iterator[Recompiled]:
    weak = [
        d for miss in misses for d in miss.differs if "weak_type" in d[1] and "weak_type" in d[2]
    ]
    if weak:
        what, now, before = weak[0]
        yield Recompiled(
            "JX301",
            file,
            line,
            f"`{function}` is traced and compiled again because `{what}` is {_kind(now)} here and was {_kind(before)} before: say its dtype once, where it is made.",
        )
    anew = sum(miss.anew for miss in misses)
    if anew:
        yield Recompiled(
            "JX303",
            file,
            line,
            f"`{function}` is made anew for this call and was traced {anew + 1} times: jit it once, outside.",
        )
    static = sum(miss.static for miss in misses)
    if static + 1 >= FIRST_SHAPES:
        yield Recompiled(
            "JX306",
            file,
            line,
            f"`{function}` is traced and compiled for {static + 1} values of a static argument: make it an argument that is traced, or give few values.",
        )
    types: dict[str, set[str]] = defaultdict(set)
    for miss in misses:
        for what, now, before in miss.differs:
            if "weak_type" not in now:
                types[what] |= {now, before}
    for what, seen in types.items():
        if len(seen) >= FIRST_SHAPES:
            few = ", ".join(sorted(seen)[:4]) + (" …" if len(seen) > 4 else "")
            yield Recompiled(
                "JX306",
                file,
                line,
                f"`{function}` is traced and compiled for {len(seen)} types of `{what}` ({few}): pad to a few sizes.",
            )


def _kind(text: str) -> str:
    return "a Python number" if "weak_type=True" in text else "an array"
