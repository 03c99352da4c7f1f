"""All output of the commands; no other module prints.

There are three kinds of text:

* Messages (findings, tables, notes, errors). Hidden characters from the workspace are printed as
  escapes, both on a terminal and in a pipe; a pipe may end in the log of a CI runner, so text that
  the runner would execute as a command is escaped too.
* Documents (`print_document`): source, a jaxpr, HLO, SVG. They are the requested result and
  are written to files: in a pipe they are exact, on a terminal hidden characters are escapes.
* JSON (`as_json`) has the exact values, written with escapes. `print_json` adds the version of its
  schema; formats that others define are documents.

Files that the user names are written atomically, so that a full disk destroys nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from jaxsight.cli.errors import CommandError
from jaxsight.text.inert import block, one_line, visible

if TYPE_CHECKING:
    # Imported where they are used: commands do not wait for readers of code and Markdown (60 ms).
    from rich.syntax import Syntax

__all__ = ["Spinner", "Table", "Text"]

_RUNNERS_LINE = re.compile(r"^([ \t]*):(?=:)", re.MULTILINE)
_RUNNERS_MARK = re.compile(r"#(?=#(?:vso|teamcity)?\[)")
"""Commands of GitHub's, Azure's and TeamCity's runners: `::` at the beginning of a line, and `##[`,
`##vso[` or `##teamcity[` anywhere
(https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs)."""
_UNSAFE_JSON = re.compile(r"[^\n -~]|(?<=#)#")

Part = str | tuple[str, str]
"""A text, or a text and its style."""

Record = Mapping[str, object]
"""An object of JSON."""
SCHEMA_VERSION = 1
"""The version of `docs/schemas/`; another one renames, removes or redefines a field."""

MOST_ROWS = 200
"""Rows of a table, a choice: fewer hide kernels of a training step; JSON has all of them."""

ROOFLINE = "≈ time: roofline estimate from the chip's achievable rates, not a measurement"
"""What tables say below estimates."""


class Printer(Console):
    """Prints messages on stdout or stderr; lines are wrapped only with `wrap`."""

    def __init__(self, *, stderr: bool = False, wrap: bool = False) -> None:
        super().__init__(
            stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not wrap
        )

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, escaped for a CI runner's log unless the stream is a terminal."""
        plain = [visible(value) if isinstance(value, str) else value for value in objects]
        if self.file.isatty():
            super().print(*plain, **options)
            return
        with self.capture() as captured:
            super().print(*plain, **options)
        self.file.write(without_commands(captured.get()))
        self.file.flush()

    @property
    def columns(self) -> int | None:
        """The width to wrap text to; `None` in a pipe, where lines are not wrapped."""
        return self.width if self.is_terminal else None

    def print_line(self, text: str, style: str = "") -> None:
        """Print a text on one line."""
        self.print(styled((one_line(text), style)))

    def labelled(self, label: str, style: str, text: str) -> None:
        """Print `error: …` or similar; further lines begin with a bar."""
        self.print(styled((f"{label}: ", style), block(text)))

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield segments with hidden characters escaped, after all of Rich's own processing."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def print_note(printer: Printer, line: str) -> None:
    """Print one line, with its first word in colour."""
    label, _, text = line.partition(" ")
    printer.print(styled((label, "bold cyan"), f" {text}"), soft_wrap=True)


def complaint(text: str) -> str:
    """Return an error message about arguments, which Typer prints in a box on stderr."""
    shown = visible(text)
    return shown if sys.stderr.isatty() else without_commands(shown)


def without_commands(text: str) -> str:
    """Return text in which a CI runner finds no commands."""
    return _RUNNERS_MARK.sub(r"\\x23", _RUNNERS_LINE.sub(r"\1\\x3a", text))


def tolerate() -> None:
    """Print characters that the streams' encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def styled(*parts: Part) -> Text:
    """Return concatenated texts, with a style for each."""
    return Text.assemble(
        *(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts)
    )


def cells(*parts: Part) -> Iterator[Text]:
    """Yield cells of a table, each on one line."""
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        yield Text(one_line(text), style)


def print_document(text: str, language: str = "") -> None:
    """Print a document: exact in a pipe; on a terminal with colours and without hidden characters.

    Args:
        language: of the syntax highlighting; empty for none.
    """
    printer = Printer()
    if not printer.file.isatty():
        printer.file.write(text if text.endswith("\n") else f"{text}\n")
        printer.file.flush()
    elif language:
        printer.print(code(text, language))
    else:
        printer.print(visible(text.rstrip("\n")))


def code(text: str, language: str = "python") -> Syntax:
    """Return code with syntax highlighting."""
    from rich.syntax import Syntax

    return Syntax(visible(text), language, theme="ansi_dark", background_color="default")


def print_page(text: str) -> None:
    """Print a page of our own documentation."""
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def print_markdown(printer: Printer, text: str) -> None:
    """Print the engine's Markdown: code unchanged, prose without markup but for backticks."""
    from jaxsight.text.markdown_reader import sections

    for number, (language, part) in enumerate(sections(text, code="`{}`", link="{}, {}")):
        if number:
            printer.print()
        if language == "python" and printer.is_terminal:
            printer.print(code(part))
        else:
            printer.print(part)


def as_json(value: object) -> str:
    """Return JSON with hidden characters as escapes; decoding it yields the exact values."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _UNSAFE_JSON.sub(_json_escape, text)


def as_json_line(value: object) -> str:
    """Return the same on one line, without spaces."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE_JSON.sub(_json_escape, text)


def versioned(value: Record | Sequence[Record]) -> Record | list[Record]:
    """Return what a command prints as JSON, with the version of its schema in each object."""
    if isinstance(value, Mapping):
        return {"schema_version": SCHEMA_VERSION, **value}
    return [{"schema_version": SCHEMA_VERSION, **record} for record in value]


def print_json(value: Record | Sequence[Record]) -> None:
    """Print an object, or a list of objects, as `docs/schemas/` describes the command's output."""
    print(as_json(versioned(value)))


def print_json_line(value: Record) -> None:
    """Print an object on one line of stdout, at once."""
    print(as_json_line(versioned(value)), flush=True)


def _json_escape(match: re.Match[str]) -> str:
    char = match[0]
    if char != "#" and visible(char) == char and char != "\t":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def print_rows(
    printer: Printer,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    sides: str,
    total: int = 0,
    *,
    is_cut: bool = False,
) -> None:
    """Print a table without its empty columns, and how many of `total` rows it leaves out.

    Args:
        printer: where to print.
        columns: the titles.
        rows: the texts of each row.
        sides: for each column `l` or `r`: left- or right-aligned.
        total: the number of all rows.
        is_cut: whether a row has one line, with texts that are cut where they do not fit.
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    filled = [column for column in zip(columns, sides, *rows, strict=True) if any(column[2:])]
    for title, side, *_ in filled:
        is_number = side == "r"
        table.add_column(title, justify="right" if is_number else "left", no_wrap=is_number)
    for row in zip(*(texts for _, _, *texts in filled), strict=True):
        shown = list(cells(*row))
        for text in shown if is_cut else ():
            text.no_wrap, text.overflow = True, "ellipsis"
        table.add_row(*shown)
    printer.print(table)
    if (more := total - MOST_ROWS) > 0:
        printer.print(styled((f"and {more} more (use --json to list all)", "dim")))


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or to an existing pipe or device, keeping links and permissions.

    Raises:
        CommandError: it cannot be written; the old content is unchanged.
    """
    try:
        real = path.resolve()
        if real.exists() and not real.is_file():
            with real.open("wb") as file:
                file.write(content)
        else:
            _replace(real, content)
    except (OSError, RuntimeError) as error:  # of a loop of links, before Python 3.13
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"cannot write {path}: {reason}") from error


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{os.urandom(8).hex()}.jaxsight")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)  # less the umask
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
