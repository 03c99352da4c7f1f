"""Findings as workflow commands of GitHub, which it shows on the lines of a pull request."""

from __future__ import annotations

from jaxsight.cli.output.reports.reported import (
    EXAMINED,
    CheckResult,
    Reported,
    in_cell,
    line_notes,
    misses,
    origins,
    totals,
)
from jaxsight.cli.output.reports.text import short_path
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible

GITHUB_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}


def as_github(total: CheckResult) -> str:
    """Return workflow commands, which GitHub shows on the lines of a pull request.

    There is one for each finding, each skipped statement and each function not compiled, and one
    for what was examined of files: a warning if it is nothing.
    """
    commands = list(map(_command, total.reported))
    for note in line_notes(total):
        line = "" if note.cells else f",line={note.line + 1}"
        location = f"file={_property(short_path(note.path))}{line}"
        title = f"title=jaxsight ({note.code})"
        commands.append(f"::notice {title},{location}::{_data(note.message)}")
    if total.files:
        level = "notice" if origins(total.examined) else "warning"
        message = "; ".join(filter(None, (totals(total.examined), misses(total.examined))))
        commands.append(f"::{level} title=jaxsight ({EXAMINED})::{_data(message)}")
    return "\n".join(commands)


def _command(reported: Reported) -> str:
    finding = reported.finding
    properties: dict[str, object] = {
        "title": f"jaxsight ({finding.code})",
        "file": short_path(reported.path),
    }
    if not reported.cells:
        properties |= {
            "line": finding.range.start.line + 1,
            "col": finding.range.start.column + 1,
            "endLine": finding.range.end.line + 1,
            "endColumn": finding.range.end.column + 1,
        }
    message = in_cell(reported.cells, finding.range.start.line, "\n".join(finding.lines))
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{GITHUB_COMMANDS[finding.severity]} {written}::{_data(message)}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
