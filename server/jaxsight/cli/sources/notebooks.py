"""Read a notebook (`.ipynb`) as one text: its Python cells, joined as an editor joins them."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading
from jaxsight.text.magics import without_magics

SUFFIX = ".ipynb"


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a notebook's text: numbers (from 1, as ruff counts them) and first lines."""

    numbers: tuple[int, ...] = ()
    first_lines: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def of_line(self, line: int) -> tuple[int, int]:
        """Return the cell of a line of the text (from 0), and the line in it."""
        at = max(bisect_right(self.first_lines, line) - 1, 0)
        return self.numbers[at], line - self.first_lines[at]

    def place(self, line: int) -> str:
        """Return `12` for a line of a file (from 0), `cell 3:2` for one of a notebook."""
        if not self:
            return str(line + 1)
        cell, inside = self.of_line(line)
        return f"cell {cell}:{inside + 1}"


NO_CELLS = Cells()
"""Those of a file that is not a notebook."""


def is_notebook(path: Path) -> bool:
    """Return whether a file's name is that of a notebook."""
    return path.suffix == SUFFIX


def read(path: Path) -> tuple[str, Cells]:
    """Return the text of a notebook, and where its cells are.

    Raises:
        UnreadableError: it cannot be read, or is not a notebook.
    """
    try:
        cells = json.loads(reading.text(path))["cells"]
        sources = {
            number: "".join(cell["source"])  # lines, or one text
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise reading.UnreadableError(path, "it is not a notebook") from error
    first_lines: list[int] = []
    text = ""
    for source in sources.values():
        first_lines.append(text.count("\n"))
        text += without_magics(source.replace("\r\n", "\n").replace("\r", "\n")) + "\n"
    return text, Cells(tuple(sources), tuple(first_lines))
