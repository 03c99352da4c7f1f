"""The environment of a tracer: the user's, without variables of the server's own Python.

An editor starts the server with variables of its own (a bundled `PYTHONPATH`, the server's virtual
environment), which must not reach user code.
Variables that the user exported are kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxsight.files import reading

OF_SERVER = frozenset(
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
"""Variables that control the start of Python: set for the server, not for user code."""

ALWAYS = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",  # a segmentation fault prints a traceback
    "PYTHONBREAKPOINT": "0",  # there is no terminal for a debugger
}

UNLESS_SET = {
    "JAX_PLATFORMS": "cpu",  # tracing needs no device: leave the accelerator to the user's own runs
    # If the user selects a GPU, do not allocate most of its memory.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def tracer_environment(
    python: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables for the Python executable `python`, derived from the server's.

    `overrides` are the user's settings, which take precedence.
    """
    variables = without_server(
        {name: value for name, value in environ.items() if name not in OF_SERVER}
    )
    # Programs that user code starts get the environment of `python`, not the server's own.
    folder = Path(python).parent
    if "VIRTUAL_ENV" in variables and sys.prefix != sys.base_prefix:
        own = Path(sys.prefix)
        if Path(variables["VIRTUAL_ENV"]) == own and own != folder.parent:
            del variables["VIRTUAL_ENV"]
    if reading.is_file(folder.parent / "pyvenv.cfg"):
        variables["VIRTUAL_ENV"] = str(folder.parent)
        path = variables.get("PATH", os.defpath)
        variables["PATH"] = os.pathsep.join([str(folder), path])
    return {**UNLESS_SET, **variables, **ALWAYS, **(overrides or {})}


def without_server(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables without the folders of the server's own packages in `PYTHONPATH`."""
    variables = dict(environ)
    if "PYTHONPATH" in variables:
        folders = [
            folder for folder in variables["PYTHONPATH"].split(os.pathsep) if not _of_server(folder)
        ]
        variables["PYTHONPATH"] = os.pathsep.join(folders)
        if not folders:
            del variables["PYTHONPATH"]
    return variables


def neutral_folder() -> str:
    """Return a folder of no project to run a process in: the home folder if there is one."""
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` raises where there is none
    return home if os.path.isabs(home) and os.access(home, os.X_OK) else os.path.abspath(os.sep)  # noqa: PTH100, PTH117


def _of_server(entry: str) -> bool:
    """Return whether a folder of `PYTHONPATH` has the server's own packages."""
    return not entry or any(
        reading.is_file(Path(entry, package, "__init__.py")) for package in ("jaxsight", "pygls")
    )
