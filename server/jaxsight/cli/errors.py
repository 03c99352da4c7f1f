"""Errors that stop a command, printed as one line and never as a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

FOUND = 1
"""The exit status when there are findings."""
UNUSABLE = 2
"""The exit status when the command itself failed."""
NOTHING_EXAMINED = 3
"""The exit status when there are no findings because no function was examined."""
PYTHON_OPTION = "`--python`"


class CommandError(Exception):
    """The command failed. The message is for the user: the error; then what to do, after `; `."""


@contextmanager
def failing_on(*kinds: type[Exception], about: str = "") -> Iterator[None]:
    """Let the command fail on some errors, with their messages after `about`.

    Raises:
        CommandError: one of them occurred.
    """
    try:
        yield
    except kinds as error:
        # A `KeyError` as text is its message in quotation marks.
        message = error.args[0] if isinstance(error, LookupError) else error
        raise CommandError(f"{about}{message}") from error


def or_nearest(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean a or b?` with those of `names` that resemble `name`, or nothing."""
    names = list(names)
    # `step` is to find `train_step`, whose ratio is below `difflib`'s default of 0.6.
    near = get_close_matches(name, names, n=2, cutoff=0.5)
    near += [method for method in names if method.endswith(f".{name}") and method not in near]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def about_python_option(error: str) -> str:
    """Return an error about the setting `jaxsight.python` as one about `--python`.

    The engine gets the option as the setting with the highest precedence.
    """
    return error.replace("setting `jaxsight.python`", f"option {PYTHON_OPTION}")
