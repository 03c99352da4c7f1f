"""How the server starts what it confines, and what this machine holds."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from jaxsight.files.ownership import KEPT, WRITABLE
from jaxsight.timeline import VARIABLE
from jaxsight.workers.confinement import caches, landlock, seccomp
from jaxsight.workers.confinement.launch import NEWEST

_LAUNCHER = Path(__file__).parent / "launch.py"


def confined(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one confined, where it has no guardian.

    It may write what its variable `WRITABLE` names.
    """
    if os.name != "posix":
        return list(command)
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(NEWEST), *command]


def variables(environment: Mapping[str, str], root: str = "") -> dict[str, str]:
    """Return the variables of a confined process; this may take a second for large caches.

    Args:
        environment: those that it has otherwise.
        root: the project or environment with which it shares what lasts, if with one.
    """
    made = caches.variables(environment, root) if root else dict(environment)
    # What the user's own variable names, too.
    writable = [environment.get(WRITABLE, ""), made.get(KEPT, ""), os.environ.get(VARIABLE, "")]
    return {**made, WRITABLE: os.pathsep.join(filter(None, writable))}


@contextlib.contextmanager
def temporary(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Provide the variables of a confined process without a guardian, with a folder of its own."""
    with tempfile.TemporaryDirectory("", "jaxsight-", ignore_cleanup_errors=True) as folder:
        yield variables({**environment, "TMPDIR": folder, WRITABLE: folder})


@cache
def held() -> str:
    """Return what confined processes cannot change on this machine, as a sentence for users."""
    if sys.platform == "darwin":
        return "code that is looked at changes no files and uses no network (sandbox-exec)"
    parts = [*_held_on_linux()] if sys.platform == "linux" else []
    if not parts:
        return "this system confines nothing: only calls of Python are refused, none of C"
    return f"code that is looked at {', '.join(parts)}"


def _held_on_linux() -> Iterator[str]:
    if abi := landlock.version(NEWEST):
        yield f"changes no files (Landlock {abi})"
    if seccomp.is_available():
        yield "uses no network and ends no other process (seccomp)"
