"""Remove IPython's extensions of Python from a notebook cell, without moving the rest.

`%line` magics, `!commands` and `help?` become blank lines (or `pass`, if they are indented),
`x = !ls` becomes `x = None`, and a cell that starts with `%%` is Python only for the magics
that run Python. `%time x = f(y)` is the statement after it, and `%timeit f(x)` an expression that
is read and not evaluated; both stay in their columns. `%%time` and `%%timeit` leave the number of
statements in their cell.
The number of lines does not change.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jaxsight.text.parsing import module_in

_PYTHON_CELLS = frozenset({"capture", "prun", "time", "timeit"})
"""The `%%` magics of IPython whose cell is Python, run in the notebook's own process."""

_CELL_MAGIC = re.compile(r"%%(\w*)")
_LINE_MAGIC = re.compile(r"(\s*)(?:[%!?]|[^#'\"]*\w\?{1,2}\s*(?:#.*)?$)")
_TIMED = re.compile(r"%(time|timeit)((?:[ \t]+-(?:[nrt][ \t]*\d+|[qpco]))*[ \t]+)(?=[^-\s])")
_STATEMENT, _EXPRESSION, _CELL = "0;", "0 and", "0 or"
"""What stands for `%time` and `%timeit` before what they measure, and for both with `%%`."""
_ASSIGNED_MAGIC = re.compile(r"(\s*[\w.,\[\]'\" ]*?\w[\w.\]]*\s*=\s*)[%!](?=\S)")
_TOKEN = re.compile(
    r"""\#[^\n]*                                       # a comment
    | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<quote>'''|\"\"\"|'|\")
    | \\\n | \\.
    """,
    re.VERBOSE,
)


def without_magics(text: str) -> str:
    """Return the cell as Python, with the same number of lines."""
    if not any(sign in text for sign in "%!?"):
        return text
    magic = _CELL_MAGIC.match(text)
    if magic:
        lines = text.split("\n")
        if magic[1] not in _PYTHON_CELLS:
            return "\n" * (len(lines) - 1)
        if len(lines) == 1:
            return ""
        python = without_magics("\n".join(lines[1:]))
        tree = module_in(python) if magic[1] in ("time", "timeit") else None
        count = f"{_CELL} {len(tree.body)}" if tree is not None and tree.body else ""
        return f"{count}\n{python}"
    return "\n".join(_cleaned(text.split("\n")))


def _cleaned(lines: list[str]) -> Iterator[str]:
    state = _State()
    continued = False
    for line in lines:
        if continued:
            continued = line.endswith("\\")
            yield ""
        elif state.between_statements and (timed := _timed(line)):
            yield timed
        elif state.between_statements and (magic := _LINE_MAGIC.match(line)):
            continued = line.endswith("\\")
            yield magic[1] + "pass" if magic[1] else ""
        elif state.between_statements and (magic := _ASSIGNED_MAGIC.match(line)):
            continued = line.endswith("\\")
            yield magic[1] + "None"
        else:
            state.pass_over(line)
            yield line


def _timed(line: str) -> str:
    """Return a line that measures the time of Python as Python; empty for other lines."""
    magic = _TIMED.match(line)
    if magic is None:
        return ""
    begin = _STATEMENT if magic[1] == "time" else _EXPRESSION
    python = begin.ljust(magic.end()) + line[magic.end() :]
    return python if module_in(python) is not None else ""


def display(line: str) -> str:
    """Return a line without magics for people, with the magic that measures what is on it."""
    for magic, begin in (("%timeit", _EXPRESSION), ("%time", _STATEMENT)):
        if line.startswith(begin.ljust(len(magic) + 1)):
            return magic + line[len(magic) :]
    return line


def is_timed(text: str) -> bool:
    """Return whether a top-level statement's text, without magics, may have been measured."""
    return text.startswith((_STATEMENT, _EXPRESSION, _CELL))


def timed_by_magics(trees: Sequence[ast.Module]) -> Iterator[list[ast.stmt]]:
    """Yield the statements that each magic measures, of all statements of a text without magics.

    Statements that share a line are one tree.
    """
    for number, tree in enumerate(trees):
        match tree.body:
            case [ast.Expr(value=ast.Constant(value=0)), ast.stmt() as statement]:
                yield [statement]
            case [ast.Expr(value=ast.BoolOp(op=ast.And(), values=[ast.Constant(value=0), value]))]:
                yield [ast.copy_location(ast.Expr(value), value)]
            case [
                ast.Expr(
                    value=ast.BoolOp(
                        op=ast.Or(), values=[ast.Constant(value=0), ast.Constant(value=int(count))]
                    )
                )
            ]:
                cell = [statement for each in trees[number + 1 :] for statement in each.body]
                yield cell[:count]


class _State:
    """The context in which a line begins: brackets, a multi-line string, a continued line."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._goes_on = False

    @property
    def between_statements(self) -> bool:
        return not (self._depth or self._quote or self._goes_on)

    def pass_over(self, line: str) -> None:
        """Read a line of Python."""
        at = 0
        self._goes_on = False
        while at < len(line):
            if self._quote:
                at = self._end_of_string(line, at)
                continue
            token = _TOKEN.search(line, at)
            if token is None:
                break
            at = token.end()
            if token["open"]:
                self._depth += 1
            elif token["close"]:
                self._depth = max(0, self._depth - 1)
            elif token["quote"]:
                self._quote = token["quote"]
            elif token[0].startswith("#"):
                return
        if len(self._quote) == 1 and not line.endswith("\\"):
            self._quote = ""  # an unfinished string ends with its line
        self._goes_on = line.endswith("\\") and not self._quote

    def _end_of_string(self, line: str, at: int) -> int:
        while at < len(line):
            if line.startswith(self._quote, at):
                at += len(self._quote)
                self._quote = ""
                return at
            at += 2 if line[at] == "\\" else 1
        return at


# The code of notebooks, as files on disk have it; an editor sends the cells of open ones.


NOTEBOOK = ".ipynb"


def notebook_cells(content: str) -> list[str]:
    """Return the Python cells of a notebook's file, without magics; none of something else."""
    try:
        notebook: Any = json.loads(content)
        sources = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return []
    texts = ("".join(map(str, source)) for source in sources if isinstance(source, list | str))
    return [without_magics(text.replace("\r\n", "\n").replace("\r", "\n")) for text in texts]


def notebook_text(content: str) -> str:
    """Return all cells as one text, as the engine has those of an open notebook."""
    return "".join(f"{cell}\n" for cell in notebook_cells(content))
