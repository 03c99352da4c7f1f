"""Read command-line arguments that name files and functions: `FILE:FUNCTION`, paths to check.

A command reads files on disk, the cells of notebooks, or what stdin has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from jaxsight.cli import git
from jaxsight.cli.errors import CommandError, failing_on, or_nearest
from jaxsight.cli.sources import notebooks
from jaxsight.cli.sources.notebooks import NO_CELLS, Cells
from jaxsight.files import reading
from jaxsight.source.module import Module

SKIPPED = frozenset(
    {"__pycache__", "build", "dist", "env", "node_modules", "site-packages", "venv"}
)
"""Folders without code of the project; those that begin with a dot are skipped as well."""


@dataclass(frozen=True, slots=True)
class Address:
    """A function in a file. `function` is a qualified name, empty if only the file was given."""

    path: Path
    function: str
    text: str | None = None
    """The text of stdin or of a revision, in place of the file's."""
    revision: str = ""
    """The git revision of the text."""

    @property
    def name(self) -> str:
        """The function, and which revision it is of."""
        return f"{self.function} of {self.revision}" if self.revision else self.function

    def read(self) -> str:
        """Return the text of the file.

        Raises:
            CommandError: it cannot be read or decoded.
        """
        return read_source(self.path) if self.text is None else self.text


STDIN = "-"
"""Stdin in place of a file, on the command line."""
STDIN_NAME = Path("stdin.py")
"""The name of its file, unless `--stdin-filename` says otherwise."""


def parse_address(text: str, stdin_name: str | None = None) -> Address:
    """Read `FILE:FUNCTION`, or `FILE::FUNCTION` as pytest writes it.

    A nested function is `outer.inner`, or as Python names it, `outer.<locals>.inner`.
    `-` is the text on stdin, which is that of `stdin_name`, a `FILE:FUNCTION`, too.

    Raises:
        CommandError: the file does not exist, or stdin is not text.
    """
    if (text == STDIN) != (stdin_name is not None):
        raise CommandError("`-` and --stdin-filename FILE:FUNCTION require each other")
    file, function = file_and_function(stdin_name or text)
    path = Path(file).absolute()
    if stdin_name is not None:
        source = read_stdin()
        return Address(path, _qualified(source, function), source)
    if reading.is_folder(path):
        raise CommandError(
            f"{file} is a folder; give a file and a function, such as {file}/model.py:loss"
        )
    if not reading.is_file(path):
        beside = reading.below(path.parent, "*.py") if reading.is_folder(path.parent) else ()
        raise CommandError(f"no such file: {file}{or_nearest(path.name, (p.name for p in beside))}")
    with suppress(CommandError):  # whoever reads the file reports it
        if "." in function:
            function = _qualified(read_source(path), function)
    return Address(path, function)


def file_and_function(text: str) -> tuple[str, str]:
    """Return both parts of `FILE:FUNCTION` or `FILE::FUNCTION`; a file may have that name."""
    file, colon, function = text.rpartition(":")
    if not colon or reading.is_file(text) or os.sep in function:
        return text, ""
    return file if reading.is_file(file) else file.removesuffix(":"), function


def _qualified(source: str, function: str) -> str:
    """Return the qualified name of a function, which may be that of a nested one without marks."""
    if "." not in function:
        return function
    functions = Module.parse(source).functions
    names = [each.qualname for _, each in functions]
    nested = (name for name in names if name.replace(".<locals>", "") == function)
    return function if function in names else next(nested, function)


def read_source(path: Path) -> str:
    """Return the text of a Python file, decoded like Python does, or of a notebook's Python cells.

    Line ends are unchanged.

    Raises:
        CommandError: it cannot be read or decoded.
    """
    with failing_on(reading.UnreadableError):
        return notebooks.read(path)[0] if notebooks.is_notebook(path) else reading.source(path)


def read_stdin() -> str:
    """Return the text on stdin, decoded like Python does.

    Raises:
        CommandError: it is not text.
    """
    content = sys.stdin.buffer.read(reading.SOURCE)
    with failing_on(SyntaxError, UnicodeError, LookupError, about="cannot read stdin: "):
        return content.decode(reading.encoding(content))


def parse_against(text: str | None, address: Address) -> Address | None:
    """Return what a function is compared with: another function, or itself in a git revision.

    Raises:
        CommandError: there is no such file, or git does not have it.
    """
    if text is None:
        return None
    is_function = ":" in text or reading.is_file(text)
    return parse_address(text) if is_function else in_revision(address, text)


def in_revision(address: Address, revision: str) -> Address:
    """Return a function in a git revision.

    Raises:
        CommandError: git does not have its file.
    """
    path = address.path
    with failing_on(git.NoAnswer, about=f"cannot read {path.name} at {revision}: "):
        text = git.committed(path, revision).decode("utf-8", "replace")
    return replace(address, text=text, revision=revision)


def paths_of(*addresses: Address | None) -> list[Path]:
    """Return the files of functions, each once."""
    return list(dict.fromkeys(each.path for each in addresses if each is not None))


def python_files(paths: Iterable[Path], *, with_notebooks: bool = False) -> Iterator[Path]:
    """Yield the given files, and the Python files in the given folders, sorted in each folder.

    A file that several paths lead to is yielded once.

    Args:
        paths: files and folders.
        with_notebooks: whether the notebooks in folders are yielded as well.

    Raises:
        CommandError: a path does not exist.
    """
    suffixes = (".py", notebooks.SUFFIX) if with_notebooks else (".py",)
    yielded: set[str] = set()
    for path in paths:
        if not reading.exists(path):
            raise CommandError(f"no such file or folder: {path}")
        own = path.absolute()
        for file in _below(own, suffixes) if reading.is_folder(path) else [own]:
            real = os.path.realpath(file)
            if real not in yielded:
                yielded.add(real)
                yield file


def _below(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED
            and not reading.is_file(Path(parent, name, "pyvenv.cfg"))
        )
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(suffixes))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to check; `text` is that of stdin, in place of the file's."""

    path: Path
    is_argument: bool = False
    """Whether the file itself was named on the command line."""
    text: str | None = None

    @property
    def is_fixable(self) -> bool:
        """Whether fixes can be written to the file."""
        return self.text is None and not notebooks.is_notebook(self.path)

    def read(self) -> tuple[str, Cells]:
        """Return the text, and the cells of a notebook.

        Raises:
            CommandError: it cannot be read.
        """
        if self.text is not None:
            return self.text, NO_CELLS
        if not notebooks.is_notebook(self.path):
            return read_source(self.path), NO_CELLS
        with failing_on(reading.UnreadableError):
            return notebooks.read(self.path)


def texts(paths: Iterable[Path], stdin_name: Path | None) -> Iterator[SourceFile]:
    """Yield what the paths on the command line name.

    Raises:
        CommandError: a path does not exist, or stdin is not alone or is not text.
    """
    paths = list(paths)
    if Path(STDIN) in paths:
        if len(paths) > 1:
            raise CommandError("`-` is stdin; it cannot be combined with other paths")
        path = (stdin_name or STDIN_NAME).absolute()
        yield SourceFile(path, is_argument=True, text=read_stdin())
        return
    if stdin_name is not None:
        raise CommandError("--stdin-filename requires `-` as the path")
    named = {path.absolute() for path in paths}
    for file in python_files(paths, with_notebooks=True):
        yield SourceFile(file, is_argument=file in named)
