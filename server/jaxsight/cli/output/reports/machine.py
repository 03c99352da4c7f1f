"""Findings for other programs: JSON with ruff's keys, GitHub's workflow commands, SARIF 2.1.0.

As in ruff's output, lines and columns count from 1, columns count characters, and ends are
exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from jaxsight import __version__
from jaxsight.cli.output.reports.reported import Incomplete, Refused, Reported
from jaxsight.cli.output.reports.text import short_path
from jaxsight.features import caveats
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.kernels.uncompiled import Uncompiled
from jaxsight.rules import RULES
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.slicing.caveat import Caveat
from jaxsight.source.text import Position
from jaxsight.text.inert import visible

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
_LINK = re.compile(r"\]\(")
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


INCOMPLETE = "incomplete"
"""The code for a function with skipped statements; it is not a rule, so it cannot be selected or
ignored.
"""


NOT_COMPILED = "not-compiled"
"""The code for a function that was not compiled, which is not a rule either."""


def as_json(
    reported: Sequence[Reported],
    incomplete: Sequence[Incomplete] = (),
    pythons: Mapping[str, object] | None = None,
    refused: Sequence[Refused] = (),
) -> list[dict[str, Any]]:
    """Return a list of objects, as `ruff check --output-format json` writes it.

    Besides ruff's keys there are `severity`, and `complete` and `caveats` of the function.
    A function with skipped statements has an object of its own with the code `incomplete`, and one
    that was not compiled has one with `not-compiled`.
    `python` is the Python environment that traced the file, from `pythons`.
    """
    objects = [*map(_object, reported), *map(_incomplete, incomplete), *map(_refused, refused)]
    if pythons is None:
        return objects
    return [{**record, "python": pythons.get(record["filename"])} for record in objects]


def _object(reported: Reported) -> dict[str, Any]:
    finding = reported.finding
    return {
        "code": finding.code,
        "message": finding.message,
        "help": finding.help or None,
        "notes": list(finding.notes),
        "data": _figures(finding.data),
        "filename": reported.path,
        "location": _location(finding.range.start),
        "end_location": _location(finding.range.end),
        "url": finding.url or None,
        "fix": _fix(reported.fix) if reported.fix is not None else None,
        "severity": finding.severity.value,
        **caveats.record(reported.caveats),
    }


def _full_message(finding: Finding) -> str:
    """Return the message with its help and notes, a line each."""
    return "\n".join(finding.lines)


def _figures(data: object) -> dict[str, Any] | None:
    """Return those attributes of a finding's data that JSON can represent."""
    if data is None or not is_dataclass(data) or isinstance(data, type):
        return None
    return {name: value for name, value in asdict(data).items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _fix(fix: Fix) -> dict[str, Any]:
    """Return a fix in ruff's format; `unsafe` ones need `--unsafe-fixes`."""
    return {
        "applicability": "safe" if fix.safe else "unsafe",
        "message": fix.title,
        "edits": [
            {
                "content": edit.text,
                "location": _location(edit.range.start),
                "end_location": _location(edit.range.end),
            }
            for edit in fix.edits
        ],
    }


def _incomplete(incomplete: Incomplete) -> dict[str, object]:
    function = incomplete.function
    message = f"`{function.function}` may differ from the imported module"
    return {**_of_function(incomplete, INCOMPLETE, message), **caveats.record(function.caveats)}


def _refused(refused: Refused) -> dict[str, object]:
    record = _of_function(refused, NOT_COMPILED, refused.function.message)
    return {**record, "target": refused.function.target}


def _of_function(subject: Incomplete | Refused, code: str, message: str) -> dict[str, object]:
    """Return an object about a whole function, in the format of findings."""
    function = subject.function
    return {
        "code": code,
        "message": message,
        "help": None,
        "notes": [],
        "data": None,
        "filename": subject.path,
        "location": _location(function.range.start),
        "end_location": _location(function.range.end),
        "url": None,
        "fix": None,
        "severity": Severity.INFORMATION.value,
        "function": function.function,
    }


def _location(position: Position) -> dict[str, int]:
    return {"row": position.line + 1, "column": position.column + 1}


def as_github(
    reported: Sequence[Reported],
    incomplete: Sequence[Incomplete] = (),
    refused: Sequence[Refused] = (),
) -> str:
    """Return workflow commands, which GitHub shows on the lines of a pull request.

    There is one for each finding, each skipped statement and each function not compiled.
    """
    notes = (
        _notice(INCOMPLETE, path, caveats.line(caveat), caveats.reason(caveat))
        for path, caveat in _left_out(incomplete)
    )
    functions = (
        _notice(NOT_COMPILED, function.path, _line(function.function), function.function.message)
        for function in refused
    )
    return "\n".join([*map(_command, reported), *notes, *functions])


def _line(function: Uncompiled) -> int:
    return function.range.start.line + 1


def _left_out(incomplete: Sequence[Incomplete]) -> dict[tuple[str, Caveat], None]:
    """Return the caveats of all functions, without duplicates."""
    return dict.fromkeys(
        (subject.path, caveat) for subject in incomplete for caveat in subject.function.caveats
    )


def _notice(code: str, path: str, line: int, message: str) -> str:
    location = f"file={_property(short_path(path))},line={line}"
    return f"::notice title=jaxsight ({code}),{location}::{_data(message)}"


def _command(reported: Reported) -> str:
    finding = reported.finding
    properties = {
        "title": f"jaxsight ({finding.code})",
        "file": short_path(reported.path),
        "line": finding.range.start.line + 1,
        "col": finding.range.start.column + 1,
        "endLine": finding.range.end.line + 1,
        "endColumn": finding.range.end.column + 1,
    }
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{GITHUB_COMMANDS[finding.severity]} {written}::{_data(_full_message(finding))}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(
    reported: Sequence[Reported],
    incomplete: Sequence[Incomplete] = (),
    refused: Sequence[Refused] = (),
) -> dict[str, object]:
    """Return a SARIF run, with the rules of its findings.

    Skipped statements and functions that were not compiled are notifications of the tool, not
    results.
    """
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
        "results": [_result(subject) for subject in reported],
    }
    if incomplete or refused:
        notifications = [
            _notification(path, caveats.line(caveat), caveats.reason(caveat))
            for path, caveat in _left_out(incomplete)
        ]
        notifications += [
            _notification(subject.path, _line(subject.function), subject.function.message)
            for subject in refused
        ]
        run["invocations"] = [
            {"executionSuccessful": True, "toolExecutionNotifications": notifications}
        ]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _unlinked(text: str) -> str:
    """Return a message in which `x[0](y)` is not a link.

    SARIF has links in plain text too (2.1.0, section 3.11.6).
    """
    return _LINK.sub(r"\\](", visible(text))


def _notification(path: str, line: int, message: str) -> dict[str, object]:
    region = {"startLine": line}
    physical = {"artifactLocation": {"uri": Path(path).as_uri()}, "region": region}
    return {
        "level": "note",
        "message": {"text": _unlinked(message)},
        "locations": [{"physicalLocation": physical}],
    }


def _result(reported: Reported) -> dict[str, Any]:
    start, end = reported.finding.range.start, reported.finding.range.end
    region = {
        "startLine": start.line + 1,
        "startColumn": start.column + 1,
        "endLine": end.line + 1,
        "endColumn": end.column + 1,
    }
    physical = {"artifactLocation": {"uri": Path(reported.path).as_uri()}, "region": region}
    return {
        "ruleId": reported.finding.code,
        "level": SARIF_LEVELS[reported.finding.severity],
        "message": {"text": _unlinked(_full_message(reported.finding))},
        "locations": [{"physicalLocation": physical}],
    }
