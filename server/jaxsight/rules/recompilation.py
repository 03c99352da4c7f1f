"""Read JAX's explanations of tracing cache misses, which rules explain.

`jax_explain_cache_misses` logs for each miss where the call is, which function is called, and how
the arguments differ from those before. The wording has changed between versions; the parts that are
read here are common to JAX 0.8 to 0.12.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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


def named(function: str) -> str:
    """Return the function that is traced again, as messages name it."""
    return quoted(function, "this function", most=36)
