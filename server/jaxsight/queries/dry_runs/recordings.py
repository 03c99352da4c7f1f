"""Recorded calls that are older than the program: it calls the function with other types now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product

from jaxsight.examples.sets import OutsideSet
from jaxsight.wire.messages.replies import CallSeen

_ARRAY = re.compile(r"\b[a-z]\w*\[[\d, ]*\]")
"""The type of an array whose sizes are numbers."""
_CUT = "…"
"""In a text that does not show all arrays."""


def are_old(recorded: Iterable[OutsideSet], observed: Iterable[CallSeen]) -> bool:
    """Return whether the types of no recorded call are those of an observed one.

    They are not if nothing is observed, or if the types cannot be compared: of some arrays only
    values are known, or an expression.
    """
    calls = [dict(c.inputs) for c in observed if not (c.unknown or c.sized)]
    pairs = [_differ(_lines(old), now) for old, now in product(recorded, calls)]
    return bool(pairs) and all(pairs)


def _lines(recorded: OutsideSet) -> dict[str, str]:
    """Return the types of recorded arguments by parameter."""
    lines = (line.partition(": ") for line in recorded.text.split("\n"))
    return {name: text for name, colon, text in lines if colon}


def _differ(old: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether an argument has arrays in both calls, and others."""
    both = ((_arrays(old[name]), _arrays(now[name])) for name in old.keys() & now.keys())
    return any(before and after and before != after for before, after in both)


def _arrays(text: str) -> list[str]:
    """Return the types of the arrays in a text; nothing if it does not show all of them."""
    return [] if _CUT in text else [each.replace(" ", "") for each in _ARRAY.findall(text)]
