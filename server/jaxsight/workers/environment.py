"""The environment that a tracer runs in: the user's, without what belongs to the server's own
Python.

An editor starts the server with variables of its own (a bundled `PYTHONPATH`, the server's virtual
environment); they must not reach user code. What the user exported stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxsight import reading

SERVERS_OWN = frozenset(
    {
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONINSPECT",
        "PYTHONOPTIMIZE",  # would strip the docstrings that hold the example inputs
        "PYTHONSAFEPATH",
        "PYTHONIOENCODING",
        "PYTHONEXECUTABLE",
        "PYTHONPLATLIBDIR",
        "PYTHONPROFILEIMPORTTIME",
        "PYTHONVERBOSE",
        "PYTHONDEBUG",
        "__PYVENV_LAUNCHER__",
    }
)
"""How Python starts: chosen for the server, not for user code."""

ALWAYS = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",  # a segfault says where
    "PYTHONBREAKPOINT": "0",  # there is nobody to talk to a debugger
}

UNLESS_SET = {
    "JAX_PLATFORMS": "cpu",  # tracing needs no device: leave the accelerator to the user's own runs
    # And where one asks for it, do not take most of its memory.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def tracer_environment(
    python: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables for the interpreter `python`, from the server's; `overrides` are the user's
    settings and win.
    """
    found = {name: value for name, value in environ.items() if name not in SERVERS_OWN}
    if "PYTHONPATH" in found:
        kept = [each for each in found["PYTHONPATH"].split(os.pathsep) if not _of_server(each)]
        found["PYTHONPATH"] = os.pathsep.join(kept)
        if not kept:
            del found["PYTHONPATH"]
    _activate(python, found)
    return {**UNLESS_SET, **found, **ALWAYS, **(overrides or {})}


def neutral_folder() -> str:
    """A folder to run a process in that belongs to no project: the home folder, where there is
    one.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` raises where there is none
    return home if os.path.isabs(home) and os.access(home, os.X_OK) else os.path.abspath(os.sep)  # noqa: PTH100, PTH117


def _of_server(entry: str) -> bool:
    """Whether a folder of `PYTHONPATH` is where the server's own packages are."""
    return not entry or any(
        reading.is_file(Path(entry, package, "__init__.py")) for package in ("jaxsight", "pygls")
    )


def _activate(python: str, environ: dict[str, str]) -> None:
    """What `activate` does, for programs that user code starts: the interpreter's environment, not
    the server's.
    """
    folder = Path(python).parent
    if "VIRTUAL_ENV" in environ and sys.prefix != sys.base_prefix:
        own = Path(sys.prefix)
        if Path(environ["VIRTUAL_ENV"]) == own and own != folder.parent:
            del environ["VIRTUAL_ENV"]
    if reading.is_file(folder.parent / "pyvenv.cfg"):
        environ["VIRTUAL_ENV"] = str(folder.parent)
        path = environ.get("PATH", os.defpath)
        environ["PATH"] = os.pathsep.join([str(folder), path])
