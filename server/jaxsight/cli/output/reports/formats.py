"""The formats of `check --output-format` and `--report` but for that of a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import as_json, versioned, without_commands
from jaxsight.cli.output.reports import junit, machine, sarif
from jaxsight.cli.output.reports.reported import (
    EXAMINED,
    CheckResult,
    Reported,
    fingerprints,
    in_cell,
    in_project,
    line_notes,
    misses,
    origins,
    totals,
)
from jaxsight.cli.output.reports.text import short_path
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible


class FindingsFormat(StrEnum):
    """Output formats of findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"
    SARIF = "sarif"


def document(total: CheckResult, format: FindingsFormat, pythons: Mapping[str, object]) -> str:
    """Return a report for other programs; `pythons` are the Python environments of the files."""
    match format:
        case FindingsFormat.JSON:
            return as_json(versioned(machine.as_json(total, pythons)))
        case FindingsFormat.SARIF:
            return as_json(sarif.as_sarif(total))
        case FindingsFormat.GITHUB:
            return as_github(total)
        case FindingsFormat.GITLAB:
            return as_json(as_gitlab(total.reported))
        case FindingsFormat.JUNIT:
            return without_commands(junit.as_junit(total.reported, total.examined))
        case FindingsFormat.TEXT:
            raise AssertionError("a terminal's format is printed, not written to a file")


def parse_report(text: str) -> tuple[FindingsFormat, Path]:
    """Read `FORMAT:FILE`.

    Raises:
        CommandError: it is not that.
    """
    name, colon, file = text.partition(":")
    known = [each.value for each in FindingsFormat if each is not FindingsFormat.TEXT]
    if name not in known or not file:
        what = f"unknown format {name!r}" if colon else f"no file in {text!r}"
        raise CommandError(f"{what}; write FORMAT:FILE with one of {', '.join(known)}")
    return FindingsFormat(name), Path(file)


_SEVERITIES = {
    Severity.ERROR: ("error", "major"),
    Severity.WARNING: ("warning", "minor"),
    Severity.INFORMATION: ("notice", "info"),
    Severity.HINT: ("notice", "info"),
}
"""GitHub's commands, and GitLab's names."""


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
    finding, start, end = reported.finding, reported.finding.range.start, reported.finding.range.end
    properties: dict[str, object] = {"title": f"jaxsight ({finding.code})"}
    properties["file"] = short_path(reported.path)
    if not reported.cells:
        properties |= {"line": start.line + 1, "col": start.column + 1}
        properties |= {"endLine": end.line + 1, "endColumn": end.column + 1}
    message = in_cell(reported.cells, start.line, "\n".join(finding.lines))
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_SEVERITIES[finding.severity][0]} {written}::{_data(message)}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_gitlab(reported: Sequence[Reported]) -> list[dict[str, object]]:
    """Return the list of issues; GitLab shows one of those with equal fingerprints.

    See https://docs.gitlab.com/ci/testing/code_quality/.
    """
    return [
        {
            "description": visible(
                in_cell(each.cells, each.finding.range.start.line, " · ".join(each.finding.lines))
            ),
            "check_name": each.finding.code,
            "fingerprint": in_project(each, fingerprint),
            "severity": _SEVERITIES[each.finding.severity][1],
            "location": {
                "path": Path(short_path(each.path)).as_posix(),
                "lines": {"begin": 1 if each.cells else each.finding.range.start.line + 1},
            },
        }
        for each, fingerprint in zip(reported, fingerprints(reported), strict=True)
    ]
