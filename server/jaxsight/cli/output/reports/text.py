"""Print findings like a compiler: the line, its relevant part underlined, then help and notes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len

from jaxsight.cli.output.printing import Part, Text, styled
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.rules.finding import Finding, Severity
from jaxsight.text import magics
from jaxsight.text.inert import one_line, visible

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
LINE_END = re.compile(r"\r\n|\r|\n")
GUTTER = "blue"
_LABELLED = re.compile(r"(help|note): ")
_NARROWEST = 30
"""Minimum width of the text in columns: lines that a narrower terminal wraps itself are easier to
read than a column of single words.
"""


def report(reported: Reported, width: int | None = None) -> Text:
    """Return one finding on several lines, without a newline at the end.

    Args:
        width: the columns of the terminal, to wrap help and notes; unlimited by default.
    """
    finding = reported.finding
    style = STYLES[finding.severity]
    lines = LINE_END.split(reported.source)
    place = reported.cells.place(finding.range.start.line)
    number = place.rpartition(":")[2]
    edge = " " * len(number)
    first, *more_lines = finding.message.splitlines() or [""]
    parts: list[Part] = [
        (f"{finding.severity.value}[{finding.code}]", style),
        (f": {first}\n", "bold"),
        (f"{edge}--> ", GUTTER),
        f"{path_text(reported.path)}:{place}:{finding.range.start.column + 1}\n",
    ]
    if finding.range.start.line < len(lines):
        line = lines[finding.range.start.line]
        line = magics.display(line) if reported.cells else line
        parts += [
            (f"{edge} |\n", GUTTER),
            (f"{number} | ", GUTTER),
            f"{line.expandtabs(4)}\n",
            (f"{edge} | ", GUTTER),
            (f"{_underline(finding, line)}\n", style),
        ]
    for line in _footer(finding, more_lines):
        parts += [(f"{edge} = ", GUTTER), *_wrapped(line, width, len(edge) + len(" = "))]
    text = styled(*parts)
    text.rstrip()
    return text


def path_text(path: str) -> str:
    """Return the path for users, on one line."""
    return one_line(short_path(path))


def short_path(path: str) -> str:
    """Return the path relative to the working folder if it is inside, else unchanged."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def _underline(finding: Finding, line: str) -> str:
    start, end = finding.range.start, finding.range.end
    last = end.column if end.line == start.line else len(line)
    before, until = (
        cell_len(visible(line[:column].expandtabs(4)))
        for column in (start.column, max(last, start.column))
    )
    return " " * before + "^" * max(until - before, 1)


def _wrapped(text: str, width: int | None, indent: int) -> Iterator[Part]:
    """Yield the parts of a footer line, wrapped and indented below its label.

    Args:
        indent: the columns in front of it.
    """
    label = _LABELLED.match(text)
    if label is not None:
        indent += len(label[0])
        yield (label[0], "bold")
        text = text[label.end() :]
    columns = max(width - indent, _NARROWEST) if width is not None else len(text) + 1
    lines = textwrap.wrap(
        visible(text), columns, break_long_words=False, break_on_hyphens=False
    ) or [""]
    yield f"\n{' ' * indent}".join(lines) + "\n"


def _footer(finding: Finding, message_lines: list[str]) -> Iterator[str]:
    """Yield the lines below the source: further lines of the message, help, notes, places, page."""
    yield from (line for line in message_lines if line.strip())
    for text in finding.lines[1:]:
        first, *more = text.splitlines()
        yield first
        yield from (line for line in more if line.strip())
    for related in finding.related:
        start = related.range.start
        place = f"{path_text(related.path)}:{start.line + 1}:{start.column + 1}"
        yield f"{place}: {one_line(related.message)}"
    if finding.url:
        yield f"see {finding.url}"
