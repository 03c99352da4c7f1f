"""Errors that stop a command, printed as one line and never as a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

FOUND = 1
"""The exit status when there are findings."""
UNUSABLE = 2
"""The exit status when the command itself failed."""
PYTHON_OPTION = "`--python`"


class CommandError(Exception):
    """The command failed. The message is for the user: the error; then what to do, after `; `."""


def or_nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean a or b?` with those of `known` that resemble `name`, or nothing."""
    names = list(known)
    found = get_close_matches(name, names, n=2, cutoff=0.5)
    found += [other for other in names if other.endswith(f".{name}") and other not in found]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def of_python_option(error: str) -> str:
    """Return an error about the setting `jaxsight.python` as one about `--python`.

    The engine gets the option as the setting with the highest precedence.
    """
    return error.replace("setting `jaxsight.python`", f"option {PYTHON_OPTION}")
