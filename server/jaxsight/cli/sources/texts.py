"""The text of a file to check: on disk, a notebook's cells, or what stdin has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.sources import notebooks
from jaxsight.cli.sources.arguments import (
    STDIN,
    STDIN_NAME,
    python_files,
    read_source,
    read_stdin,
)
from jaxsight.cli.sources.notebooks import NO_CELLS, Cells
from jaxsight.files import reading


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
