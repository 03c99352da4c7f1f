"""Findings for people: the line in question with the wrong part underlined, as compilers do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len

from jaxsight.cli.printing import Part, Text, styled
from jaxsight.cli.reports import Reported
from jaxsight.engine.answers import Finding, Place, Severity
from jaxsight.engine.inert import one_line, visible

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
LINE_END = re.compile(r"\r\n|\r|\n")
GUTTER = "blue"


def report(reported: Reported) -> Text:
    """One finding, several lines, no newline at the end."""
    finding = reported.finding
    style = STYLES[finding.severity]
    lines = LINE_END.split(reported.source)
    number = str(finding.range.start.line + 1)
    edge = " " * len(number)
    first, *rest = "\n".join(finding.lines).splitlines() or [""]
    parts: list[Part] = [
        (f"{finding.severity.value}[{finding.code}]", style),
        (f": {first}\n", "bold"),
        (f"{edge}--> ", GUTTER),
        f"{shown_path(reported.path)}:{number}:{finding.range.start.column + 1}\n",
    ]
    if finding.range.start.line < len(lines):
        line = lines[finding.range.start.line]
        parts += [
            (f"{edge} |\n", GUTTER),
            (f"{number} | ", GUTTER),
            f"{line.expandtabs(4)}\n",
            (f"{edge} | ", GUTTER),
            (f"{_underline(finding, line)}\n", style),
        ]
    for said in _notes(finding, rest):
        parts += [(f"{edge} = ", GUTTER), f"{said}\n"]
    text = styled(*parts)
    text.rstrip()
    return text


def shown_path(path: str) -> str:
    """The path for people, on one line."""
    return one_line(short_path(path))


def short_path(path: str) -> str:
    """The path below the working folder where it lies there, else as it is."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def _underline(finding: Finding, line: str) -> str:
    start, end = finding.range.start, finding.range.end
    last = end.column if end.line == start.line else len(line)
    before = _width(line[: start.column])
    width = _width(line[: max(last, start.column)]) - before
    return " " * before + "^" * max(width, 1)


def _width(text: str) -> int:
    return cell_len(visible(text.expandtabs(4)))


def _notes(finding: Finding, rest: list[str]) -> Iterator[str]:
    yield from (line for line in rest if line.strip())
    for place in finding.related:
        yield f"{_place(place)}: {one_line(place.message)}"
    if finding.url:
        yield f"see {finding.url}"


def _place(place: Place) -> str:
    return f"{shown_path(place.path)}:{place.range.start.line + 1}:{place.range.start.column + 1}"
