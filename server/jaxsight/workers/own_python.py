"""Start processes of Python that are jaxsight's own: none imports from the folder it starts in.

`python -m`, `python -c` and an empty or relative entry of `PYTHONPATH` import modules from the
working folder, which may be a workspace that nobody trusts: its `pip.py` or `json.py` would run.

| process | imports | folder | because |
|---|---|---|---|
| guardian | the standard library (`-I -S`) | of what it watches | it needs nothing else |
| pip, venv | what is installed (`-I`) | the root | they install for others |
| versions of packages | the user's packages, too (`-P`) | the root | these are asked for |
| compilers, workers of datasets | these, too (`-P`) | the root | JAX is the user's |
| the server for commands | as `jaxsight` does (`-P`) | the root | it is that command |
| tracers, processes of `repro` | these, too (by path) | the project's | they run its code |
| what `record` and `repro` run, pytest | as without jaxsight | the user's | it is theirs |

A tracer has no option, because those of Python 3.11 would keep an older one from saying that it is
too old. It is started by its path, which Python imports from instead of the working folder, and
removes that before it imports anything else.
`tools/lint/processes.py` lists all code that starts a process.

An editor starts the server with variables of its own (a bundled `PYTHONPATH`, the server's virtual
environment), which must not reach user code. Variables that the user exported are kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading

GUARDIAN = Path(__file__).parent / "watchdog" / "guardian.py"

_BOOT = Path(__file__).parents[1] / "boot.py"

ROOT = os.path.abspath(os.sep)  # noqa: PTH100 - plain text
"""Where our own processes start: it is nobody's workspace, and only the administrator writes there.
"""


@dataclass(frozen=True, slots=True)
class OwnPython:
    """How a process is started."""

    command: list[str]
    environment: dict[str, str]
    folder: str = ROOT


def isolated(python: str, *arguments: str) -> OwnPython:
    """Return how Python is started without packages of the user's own and their variables.

    Args:
        python: the path of the interpreter.
        arguments: such as `-m`, `pip`.
    """
    dropped = OF_SERVER | {"PYTHONPATH"}  # what it starts is not isolated
    variables = {name: value for name, value in os.environ.items() if name not in dropped}
    return OwnPython([python, "-I", *arguments], variables)


def with_packages(
    python: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> OwnPython:
    """Return how Python is started with the packages that the user's own programs import.

    Args:
        python: the path of the interpreter, 3.11 or newer.
        arguments: a script with its arguments, or such as `-c`, `import jax`.
        environ: variables of the user; by default those of this process.
    """
    environ = os.environ if environ is None else environ
    variables = {name: value for name, value in environ.items() if name not in OF_SERVER}
    own = without_server(variables, is_usable=os.path.isabs)
    return OwnPython([python, "-P", *arguments], own)


def resident(listener: int) -> OwnPython:
    """Return how the server for commands is started, with the environment of this command.

    Args:
        listener: the descriptor of its socket.
    """
    command = [sys.executable, "-P", *(["-I"] if sys.flags.isolated else [])]
    command += ["-m", "jaxsight", "server", "--socket", "--descriptor", str(listener)]
    return OwnPython(command, dict(os.environ))


def booted(process: str) -> list[str]:
    """Return Python's arguments for a process of jaxsight: that of the package of this name."""
    return [str(_BOOT), process]


def tracer_command(python: str) -> list[str]:
    """Return the command that starts a tracer with this Python executable."""
    return [python, "-X", "utf8", *booted("tracer")]


def guarded(descriptor: int, command: Sequence[str], *, confined: bool = False) -> list[str]:
    """Return the command that runs another one below a guardian.

    Args:
        descriptor: the guardian's end of its connection.
        command: what the guardian starts.
        confined: whether that may change nothing outside of folders of its own.
    """
    how = "confined" if confined else "free"
    return [sys.executable, "-I", "-S", str(GUARDIAN), str(descriptor), how, *command]


def program(name: str) -> str | None:
    """Return the path of a program of the user's `PATH`; `None` if there is none.

    A relative folder of `PATH` would be searched where the process starts.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)  # noqa: PTH118 - plain text
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113, PTH117
            return path
    return None


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
    variables = {name: value for name, value in environ.items() if name not in OF_SERVER}
    variables = without_server(variables)
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


def without_server(
    environ: Mapping[str, str], is_usable: Callable[[str], bool] = bool
) -> dict[str, str]:
    """Return variables without the folders of the server's own packages in `PYTHONPATH`.

    Args:
        environ: the variables.
        is_usable: returns whether another folder stays there; by default all do.
    """
    variables = dict(environ)
    entries = variables.pop("PYTHONPATH", "").split(os.pathsep)
    if folders := [entry for entry in entries if is_usable(entry) and not _of_server(entry)]:
        variables["PYTHONPATH"] = os.pathsep.join(folders)
    return variables


def neutral_folder() -> str:
    """Return a folder of no project to run a process in: the home folder if there is one."""
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` raises where there is none
    return home if os.path.isabs(home) and os.access(home, os.X_OK) else os.path.abspath(os.sep)  # noqa: PTH100, PTH117


def _of_server(entry: str) -> bool:
    """Return whether a folder of `PYTHONPATH` has the server's own packages."""
    packages = ("jaxsight", "pygls")
    return not entry or any(reading.is_file(Path(entry, p, "__init__.py")) for p in packages)
