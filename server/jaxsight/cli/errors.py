"""What stops a command: one clear line for the user, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

FOUND = 1
"""The exit status when there is something to report about the code."""
UNUSABLE = 2
"""The exit status when the command itself could not do its work."""


class CommandError(Exception):
    """The command cannot do its work; the message is for the user and says what to do."""


def or_nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean a or b?` with those of `known` that look like `name`, else nothing."""
    names = list(known)
    found = get_close_matches(name, names, n=2, cutoff=0.5)
    found += [other for other in names if other.endswith(f".{name}") and other not in found]
    return f"; did you mean {' or '.join(found)}?" if found else ""
