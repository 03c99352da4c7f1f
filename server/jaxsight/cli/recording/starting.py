"""Start a program of the user's: with which Python, and with what message if there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.user_python import user_environment, user_interpreter
from jaxsight.recording import running
from jaxsight.text.inert import one_line


def program_environment(python: str | None, root: Path) -> tuple[str | None, dict[str, str]]:
    """Return the Python that runs a program, if it is known, and the program's variables."""
    try:
        interpreter = user_interpreter(python, root)
    except CommandError:
        if python is not None:
            raise
        interpreter = None  # the program's own is used
    return interpreter, running.program_environment(interpreter, user_environment())


@contextmanager
def starting(program: Sequence[str]) -> Iterator[None]:
    """Fail with a message if a program does not start."""
    try:
        yield
    except OSError as error:
        name = one_line(program[0])
        raise CommandError(f"cannot run {name}: {error.strerror}") from error
