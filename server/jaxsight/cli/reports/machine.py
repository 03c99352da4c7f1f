"""Findings for other programs: JSON with ruff's keys, GitHub's workflow commands, SARIF 2.1.0.

Lines and columns count from 1, columns in characters, ends exclusive, as ruff's do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxsight import __version__
from jaxsight.cli.reports import Reported
from jaxsight.cli.reports.text import shown_path
from jaxsight.engine.answers import Severity
from jaxsight.engine.text import Position
from jaxsight.findings.catalogue import CODES

GITHUB_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}
SARIF_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_json(reported: Sequence[Reported]) -> str:
    """A list of objects, as `ruff check --output-format json` writes it, with `severity` besides."""
    return json.dumps([_object(one) for one in reported], indent=2, ensure_ascii=False)


def _object(one: Reported) -> dict[str, Any]:
    finding = one.finding
    return {
        "code": finding.code,
        "message": finding.message,
        "filename": one.path,
        "location": _location(finding.range.start),
        "end_location": _location(finding.range.end),
        "url": finding.url or None,
        "fix": None,
        "severity": finding.severity.value,
    }


def _location(position: Position) -> dict[str, int]:
    return {"row": position.line + 1, "column": position.column + 1}


def as_github(reported: Sequence[Reported]) -> str:
    """One workflow command per finding, which GitHub shows on the lines of a pull request."""
    return "\n".join(_command(one) for one in reported)


def _command(one: Reported) -> str:
    finding = one.finding
    properties = {
        "title": f"jaxsight ({finding.code})",
        "file": shown_path(one.path),
        "line": finding.range.start.line + 1,
        "col": finding.range.start.column + 1,
        "endLine": finding.range.end.line + 1,
        "endColumn": finding.range.end.column + 1,
    }
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{GITHUB_COMMANDS[finding.severity]} {written}::{_data(finding.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(reported: Sequence[Reported]) -> str:
    """One SARIF run, with the rules that it speaks of."""
    rules = [
        {
            "id": code.code,
            "name": code.name,
            "shortDescription": {"text": code.summary},
            "helpUri": code.url,
        }
        for code in CODES.values()
        if any(one.finding.code == code.code for one in reported)
    ]
    driver = {"name": "jaxsight", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one) for one in reported],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(one: Reported) -> dict[str, Any]:
    start, end = one.finding.range.start, one.finding.range.end
    region = {
        "startLine": start.line + 1,
        "startColumn": start.column + 1,
        "endLine": end.line + 1,
        "endColumn": end.column + 1,
    }
    physical = {"artifactLocation": {"uri": Path(one.path).as_uri()}, "region": region}
    return {
        "ruleId": one.finding.code,
        "level": SARIF_LEVELS[one.finding.severity],
        "message": {"text": one.finding.message},
        "locations": [{"physicalLocation": physical}],
    }
