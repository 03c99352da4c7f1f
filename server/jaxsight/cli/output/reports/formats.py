"""The formats of `check --output-format` and `--report` but for that of a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import as_json, versioned, without_commands
from jaxsight.cli.output.reports import github, gitlab, junit, machine, sarif
from jaxsight.cli.output.reports.reported import CheckResult


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
            return github.as_github(total)
        case FindingsFormat.GITLAB:
            return as_json(gitlab.as_gitlab(total.reported))
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
