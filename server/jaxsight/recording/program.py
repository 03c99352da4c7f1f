"""What a command runs: the file of its script, its module or its tests, and the project of that."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.ownership import is_everybodys
from jaxsight.files.reading import is_marked
from jaxsight.recording.observing.functions import is_test

_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?|py(\.exe)?", re.IGNORECASE)
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python that the next word belongs to."""
_PYTEST = ("pytest", "py.test")
_ENDINGS = (".py", ".ipynb")
_MOST_TESTS = 200
"""Files of tests that are looked at in a folder, a choice: more would delay the program's start."""


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """What a command runs."""

    files: tuple[Path, ...] = ()
    """The files that run, or that have the tests; none if they are not known."""
    is_tests: bool = False
    folder: Path | None = None
    """The folder that its modules are imported from, if its files are in packages."""


def program(command: Sequence[str], folder: Path) -> StartedProgram:
    """Return what a command runs that is started in a folder."""
    words = list(command)
    name = os.path.basename(words[0])  # noqa: PTH119 - plain text
    if name in _PYTEST:
        return _tests(words[1:], folder)
    if words[0].endswith(_ENDINGS):
        return _files([words[0]], folder)
    if not _PYTHON.fullmatch(name):
        return StartedProgram()
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        if rest[0].startswith("-m"):
            rest = ["-m", rest[0][2:], *rest[1:]]
            break
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    match rest:
        case ["-m", "pytest", *arguments]:
            return _tests(arguments, folder)
        case ["-m", module, *_]:
            path = folder.joinpath(*module.split("."))
            for file in (path.with_suffix(".py"), path / "__main__.py"):
                if reading.is_file(file):
                    return StartedProgram((file,), folder=folder)
            return StartedProgram()
        case [script, *_] if not script.startswith("-"):
            return _files([script], folder)
    return StartedProgram()


def root_of(command: Sequence[str], folder: Path) -> Path:
    """Return the root of the project whose functions a command runs.

    It is that of the folder which the command is started in, if the program is in it, and else the
    program's own.
    """
    started_in = project_root(folder)
    ran = program(command, folder)
    if not ran.files:
        return started_in
    file = Path(os.path.realpath(ran.files[0]))
    own = project_root(file.parent)
    is_marked_best = is_marked(started_in) or not is_marked(own)
    if file.is_relative_to(started_in) and is_marked_best and not _is_of_many(started_in):
        return started_in
    if ran.folder is not None and not is_marked(own):
        return Path(os.path.realpath(ran.folder))
    return own


def _is_of_many(folder: Path) -> bool:
    """Return whether a folder has many projects, so that it is none itself."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where there is none
    return not is_marked(folder) and (folder in (home, *home.parents) or is_everybodys(folder))


def project_root(start: Path) -> Path:
    """Return the nearest folder at or above one that marks a project; else the folder itself."""
    start = Path(os.path.realpath(start))
    for folder in (start, *start.parents):
        if is_marked(folder) and (folder == start or not is_everybodys(folder)):
            return folder
    return start


def _files(names: Sequence[str], folder: Path) -> StartedProgram:
    return StartedProgram(tuple(filter(reading.is_file, (folder / name for name in names))))


def _tests(arguments: Sequence[str], folder: Path) -> StartedProgram:
    words = [word.partition("::")[0] for word in arguments if not word.startswith("-")]
    paths = [folder / word for word in words if reading.exists(folder / word)] or [folder]
    files = [file for path in paths for file in islice(_test_files(path), _MOST_TESTS)]
    return StartedProgram(tuple(files), is_tests=True)


def _test_files(path: Path) -> Iterator[Path]:
    if not reading.is_folder(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        own = Path(folder)
        if reading.is_file(own / "pyvenv.cfg"):
            folders.clear()
            continue
        yield from (own / name for name in sorted(names) if name.endswith(".py") and is_test(name))
