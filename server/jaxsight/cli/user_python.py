"""Choose the user's Python for a command, and start processes and programs of theirs with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jaxsight.cli.errors import CommandError, about_python_option
from jaxsight.cli.trusted_paths import trust_paths
from jaxsight.projects.projects import SETTINGS_FILE, Projects
from jaxsight.recording import running
from jaxsight.text.inert import one_line
from jaxsight.workers.own_python import without_server


def user_interpreter(python: str | None, path: Path | None = None) -> str:
    """Return the interpreter that runs the project's code.

    Args:
        python: the option `--python`.
        path: a file or folder of the project; by default, the working folder.

    Raises:
        CommandError: there is none.
    """
    path = path or Path.cwd()
    trusted = trust_paths([path])
    projects = Projects(trusted.trust)
    projects.configure(trusted.roots, {"python": python} if python else {})
    file = path.absolute() if path.is_file() else path.absolute() / SETTINGS_FILE
    project = projects.of(str(file))
    if project.interpreter is None or project.held_back:
        problem = about_python_option(project.problem) if python else project.problem
        raise CommandError(problem or project.held_back)
    return project.interpreter.path


def user_environment() -> dict[str, str]:
    """Return the variables of the user's shell, without folders of the server's own packages."""
    return without_server(os.environ)


@contextmanager
def process_variable(name: str, value: str) -> Iterator[None]:
    """Set a variable for the processes that start meanwhile."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


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
        reason = error.strerror or error
        raise CommandError(f"cannot run {one_line(program[0])}: {reason}") from error
