"""Choose the Python interpreter that runs a project's code, and state the reason.

The first that exists is chosen: the setting, the editor's choice, the project's own environment,
the activated one, jaxsight's own if JAX is installed in it, and the command `python3`. Only files
are examined: no code of the user's runs, and the tracer itself reports whether JAX is installed.
All text that is read comes from the workspace, so an invalid file or setting is skipped or
reported, whatever it contains.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import site
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading
from jaxsight.trust.decisions import path_text

log = logging.getLogger(__name__)

ENVIRONMENTS = (".venv", "venv", "env")
PLACES = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
"""Paths of the interpreter in an environment: POSIX, Windows, conda on Windows."""
PACKAGES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")
COMMANDS = ("python3", "python")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
"""The name of a version in pyenv, such as `3.12.1` or `pypy3.10-7.3`; a path is not valid."""

MayUse = Callable[[str], bool]
"""Returns whether environments and versions in a folder above the project may be used."""


@dataclass(frozen=True, slots=True)
class PythonInterpreter:
    """The path of a Python interpreter, and why it was chosen.

    In a virtual environment it is the path inside the environment, unresolved.
    """

    path: str
    reason: str


class InterpreterError(Exception):
    """The setting does not name an interpreter, or none was found.

    The message is for users and says what to do.
    """


def choose(
    root: str,
    setting: str,
    editor_choice: str,
    environ: Mapping[str, str],
    *,
    own: PythonInterpreter | None = None,
    may_use: MayUse = lambda folder: True,
) -> PythonInterpreter:
    """Return the interpreter for the project in `root`.

    Args:
        root: the project's folder; a relative setting starts here.
        setting: the setting `python`: a path, the folder of an environment, or a command on `PATH`;
            may be empty.
        editor_choice: the interpreter selected in the editor; may be empty.
        environ: the server's environment variables.
        own: the server's own interpreter, if it could trace (see `own_interpreter`).
        may_use: returns whether a folder above `root` may be searched; by default all may.

    Raises:
        InterpreterError: the setting is invalid (it is never skipped), or no Python was found.
    """
    if setting:
        return _from_setting(root, setting, environ, may_use)
    if editor_choice:
        chosen = Path(editor_choice)
        if program := _interpreter_in(chosen) or (_is_program(chosen) and str(chosen)):
            return PythonInterpreter(program, "the interpreter chosen in the editor")
    for folder in _upward(Path(root)):
        if folder != Path(root) and not may_use(str(folder)):
            continue
        for environment in (folder / name for name in ENVIRONMENTS):
            if _is_environment(environment) and (program := _interpreter_in(environment)):
                return PythonInterpreter(program, f"the project's environment `{environment}`")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = environ.get(variable, "")
        if value and (program := _interpreter_in(Path(value))):
            return PythonInterpreter(program, f"the activated environment (`{variable}`)")
    if own is not None:
        return own
    for command in COMMANDS:
        if program := _on_path(command, Path(root), environ, may_use):
            return PythonInterpreter(program, f"`{command}` on `PATH`")
    raise InterpreterError(
        "No Python interpreter found: set `jaxsight.python` to one with JAX installed"
    )


def own_interpreter() -> PythonInterpreter | None:
    """Return the Python that this process runs in, if JAX is installed in it.

    JAX is looked up, not imported.
    """
    if importlib.util.find_spec("jax") is None or not sys.executable:
        return None
    return PythonInterpreter(sys.executable, "the Python that jaxsight itself is installed in")


def has_jax(python: str) -> bool:
    """Return whether JAX is installed for an interpreter, judging by files.

    `True` is certain, `False` is not.
    """
    return any((packages / "jax").is_dir() for packages in package_folders(python))


def package_folders(python: str) -> Iterator[Path]:
    """Yield the folders that an interpreter's packages are installed in, judging by files."""
    prefixes = [Path(python).parent.parent, Path(python).parent]
    if not any(_is_environment(prefix) for prefix in prefixes):
        prefixes.append(Path(python).resolve().parent.parent)
    for prefix in prefixes:
        for pattern in PACKAGES:
            yield from prefix.glob(pattern)


def is_installed_for(python: str, path: str) -> bool:
    """Return whether a file is below an interpreter's prefixes or the user's own packages.

    Packages of the interpreter are installed in these folders.
    """
    depth = 0 if os.name == "nt" else 1
    prefixes = [Path(path).parents[depth] for path in (python, os.path.realpath(python))]
    prefixes.append(Path(python).parents[1])
    prefixes.append(Path(site.getuserbase()))
    places = set(map(os.path.realpath, prefixes))
    return any(Path(os.path.realpath(path)).is_relative_to(place) for place in places)


def _from_setting(
    root: str, setting: str, environ: Mapping[str, str], may_use: MayUse
) -> PythonInterpreter:
    shown = path_text(setting)
    reason = f"the setting `jaxsight.python` ({shown})"
    if not any(separator in setting for separator in "/\\~"):
        folder = Path(root, setting)
        if program := _on_path(setting, Path(root), environ, may_use) or _interpreter_in(folder):
            return PythonInterpreter(program, reason)
        raise InterpreterError(
            f"Invalid setting `jaxsight.python`: `{shown}` is not a command on `PATH`"
        )
    path = Path(os.path.abspath(Path(root, os.path.expanduser(setting))))  # noqa: PTH100, PTH111 (links stay; no home is no error)
    if program := _interpreter_in(path):
        return PythonInterpreter(program, reason)
    if _is_program(path):
        return PythonInterpreter(str(path), reason)
    problem = "is not executable" if os.path.exists(path) else "does not exist"  # noqa: PTH110 (never raises)
    raise InterpreterError(
        f"Invalid setting `jaxsight.python` (`{shown}`): {path_text(str(path))} {problem}"
    )


def _upward(root: Path) -> Iterator[Path]:
    """Yield the folders from `root` up to the top of its repository.

    The home folder and the root of the file system are excluded, unless they are `root`.
    """
    outside = {Path(os.path.expanduser("~")), Path(root.anchor)}  # noqa: PTH111 (without a home: no error)
    for folder in (root, *root.parents):
        if folder in outside and folder != root:
            return
        yield folder
        if os.path.exists(folder / ".git"):  # noqa: PTH110 (never raises)
            return


def environments_above(root: str) -> Iterator[str]:
    """Yield the folders above `root` that contain an environment."""
    for folder in _upward(Path(root)):
        if folder != Path(root) and any(_is_environment(folder / name) for name in ENVIRONMENTS):
            yield str(folder)


def _is_environment(folder: Path) -> bool:
    return os.path.isfile(folder / "pyvenv.cfg")  # noqa: PTH113 (never raises)


def _interpreter_in(environment: Path) -> str:
    """Return the interpreter in an environment's folder; `""` if there is none."""
    for place in PLACES:
        if _is_program(path := environment / place):
            return str(path)
    return ""


def _on_path(command: str, root: Path, environ: Mapping[str, str], may_use: MayUse) -> str:
    """Return the interpreter that a command runs in a terminal; `""` if there is none.

    The shim scripts of pyenv are resolved.
    """
    for folder in environ.get("PATH", "").split(os.pathsep):
        # `python.exe` in the Microsoft Store's folder only opens the store.
        # A relative folder would be searched in the server's working folder: a workspace.
        if not Path(folder).is_absolute() or "WindowsApps" in folder:
            continue
        if (program := shutil.which(command, path=folder)) is None:
            continue
        shims = Path(program).parent
        if shims.name == "shims" and (shims.parent / "versions").is_dir():
            if behind := _behind_shim(Path(program), root, environ, may_use):
                return behind
            continue
        return os.path.abspath(program)  # noqa: PTH100 (links stay)
    return ""


def _behind_shim(shim: Path, root: Path, environ: Mapping[str, str], may_use: MayUse) -> str:
    """Return the interpreter that pyenv would start in `root`.

    `PYENV_VERSION`, `.python-version` files and pyenv's default select it, in this order.
    """
    pyenv = shim.parent.parent
    names = environ.get("PYENV_VERSION", "").split(":") if environ.get("PYENV_VERSION") else []
    above = [folder for folder in root.parents if may_use(str(folder))]
    files = [folder / ".python-version" for folder in (root, *above)]
    for file in (*files, pyenv / "version"):
        names = names or _versions(file)
    for name in names:
        for version in (pyenv / "versions" / name, *_newest_first(pyenv / "versions", name)):
            if program := _interpreter_in(version):
                return program
    return ""


def _versions(file: Path) -> list[str]:
    """Return the names of versions in a `.python-version`; invalid names are skipped."""
    try:
        words = reading.text(file, reading.SMALL, strict=False).split()
    except reading.MissingError:
        return []
    except reading.UnreadableError as error:
        log.warning("%s", error)
        return []
    names = [word for word in words if VERSION.fullmatch(word)]
    if len(names) < len(words):
        log.warning("%s names something that is not a version of Python", path_text(str(file)))
    return names


def _newest_first(versions: Path, prefix: str) -> list[Path]:
    """Return the installed versions that a prefix such as `3.12` selects, newest first."""

    def numbers(path: Path) -> list[int]:
        return [int(part) for part in path.name.split(".") if part.isdigit()]

    if VERSION.fullmatch(prefix) is None:
        return []
    return sorted(versions.glob(f"{prefix}.*"), key=numbers, reverse=True)


def _is_program(path: Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 (never raises)
