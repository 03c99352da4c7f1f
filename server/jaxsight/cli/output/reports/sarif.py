"""Findings as SARIF 2.1.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jaxsight import __version__
from jaxsight.cli.output.reports.reported import (
    EXAMINED,
    CheckResult,
    LineNote,
    Reported,
    fingerprints,
    in_cell,
    line_notes,
    origins,
    reasons,
    totals,
)
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.rules import RULES
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible

NOT_EXAMINED = "not-examined"
"""The identifier of SARIF's notifications about functions that were not examined."""

SARIF_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}
_LINK = re.compile(r"\]\(")
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(total: CheckResult) -> dict[str, object]:
    """Return a SARIF run, with the rules of its findings.

    Notifications of the tool, not results, are: what was examined (a warning if that is nothing),
    functions that were not, skipped statements, and functions that were not compiled.
    """
    reported, examined = total.reported, total.examined
    not_examined = (
        LineNote(NOT_EXAMINED, file.path, file.cells, function.range.start.line, text)
        for file in examined
        for function in file.not_examined
        for text in [f"`{function.function}` is not examined: {function.reason}"]
    )
    rules = [
        {
            "id": rule.code,
            "name": rule.name,
            "shortDescription": {"text": rule.summary},
            "helpUri": rule.url,
        }
        for rule in RULES.values()
        if any(subject.finding.code == rule.code for subject in reported)
    ]
    driver = {"name": "jaxsight", "version": __version__, "rules": rules}
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": list(map(_result, reported, fingerprints(reported))),
    }
    run["invocations"] = [
        {
            "executionSuccessful": True,
            "toolExecutionNotifications": [
                {
                    "descriptor": {"id": EXAMINED},
                    "level": "note" if origins(examined) else "warning",
                    "message": {"text": totals(examined)},
                    "properties": {
                        "origins": origins(examined),
                        "not_examined": reasons(examined),
                    },
                },
                *map(_notification, line_notes(total)),
                *map(_notification, not_examined),
            ],
        }
    ]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _unlinked(text: str) -> str:
    """Return a message in which `x[0](y)` is not a link.

    SARIF has links in plain text too (2.1.0, section 3.11.6).
    """
    return _LINK.sub(r"\\](", visible(text))


def _notification(note: LineNote) -> dict[str, object]:
    return {
        "descriptor": {"id": note.code},
        "level": "note",
        "message": {"text": _unlinked(note.message)},
        "locations": [_physical(note.path, note.cells, {"startLine": note.line + 1})],
    }


def _result(reported: Reported, fingerprint: str) -> dict[str, object]:
    start, end = reported.finding.range.start, reported.finding.range.end
    region = {
        "startLine": start.line + 1,
        "startColumn": start.column + 1,
        "endLine": end.line + 1,
        "endColumn": end.column + 1,
    }
    message = in_cell(reported.cells, start.line, "\n".join(reported.finding.lines))
    return {
        "ruleId": reported.finding.code,
        "level": SARIF_LEVELS[reported.finding.severity],
        "message": {"text": _unlinked(message)},
        "locations": [_physical(reported.path, reported.cells, region)],
        # The key by which GitHub finds an alert again; with another name it would count lines.
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }


def _physical(path: str, cells: Cells, region: Mapping[str, int]) -> dict[str, object]:
    """Return a location; lines of a cell are not lines of the notebook's file."""
    physical: dict[str, object] = {"artifactLocation": {"uri": Path(path).as_uri()}}
    if not cells:
        physical["region"] = dict(region)
    return {"physicalLocation": physical}
