"""Findings for other programs: JSON with ruff's keys, GitHub's workflow commands, SARIF 2.1.0.

As in ruff's output, lines and columns count from 1, columns count characters, and ends are
exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path

from jaxsight import __version__
from jaxsight.cli.output.reports.reported import (
    ExaminedFile,
    IncompleteFunction,
    RefusedFunction,
    Reported,
    misses,
    origins,
    reasons,
    totals,
)
from jaxsight.cli.output.reports.text import short_path
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.features import caveats
from jaxsight.features.fixes.verifier import Fix
from jaxsight.rules import RULES
from jaxsight.rules.finding import Severity
from jaxsight.source.slicing.caveat import SliceCaveat
from jaxsight.source.text import Position, Range
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


NOT_EXAMINED = "not-examined"
"""The identifier of SARIF's notifications about functions that were not examined."""

EXAMINED = "examined"
"""The code for what was examined in a file, which is not a rule either."""


def as_json(
    reported: Sequence[Reported],
    incomplete: Sequence[IncompleteFunction] = (),
    pythons: Mapping[str, object] | None = None,
    refused: Sequence[RefusedFunction] = (),
    examined: Sequence[ExaminedFile] = (),
) -> list[dict[str, object]]:
    """Return a list of objects, as `ruff check --output-format json` writes it.

    Besides ruff's keys there are `severity`, and `complete` and `caveats` of the function.
    A function with skipped statements has an object of its own with the code `incomplete`, and one
    that was not compiled has one with `not-compiled`. A file with functions that use JAX has one
    with `examined`, which lists them.
    `python` is the Python environment that traced the file, from `pythons`.
    """
    objects = [
        *map(_object, reported),
        *map(_incomplete, incomplete),
        *map(_refused, refused),
        *map(_examined, examined),
    ]
    if pythons is None:
        return objects
    return [{**record, "python": pythons.get(str(record["filename"]))} for record in objects]


def _object(reported: Reported) -> dict[str, object]:
    finding = reported.finding
    return {
        "code": finding.code,
        "message": finding.message,
        "help": finding.help or None,
        "notes": list(finding.notes),
        "data": _figures(finding.data),
        "filename": reported.path,
        **_places(finding.range, reported.cells),
        "url": finding.url or None,
        "fix": _fix(reported.fix) if reported.fix is not None else None,
        "severity": finding.severity.value,
        "assumed_inputs": finding.assumed or None,
        **_caveats(reported.caveats, reported.cells),
    }


def _caveats(of_function: Sequence[SliceCaveat], cells: Cells) -> dict[str, object]:
    """Return the keys about a function's caveats, in a notebook with the cell of each."""
    if not cells:
        return caveats.record(of_function)
    places = [cells.of_line(caveat.range.start.line) for caveat in of_function]
    return {
        "complete": not of_function,
        "caveats": [
            {"cell": cell, "line": line + 1, "reason": caveats.reason(caveat)}
            for (cell, line), caveat in zip(places, of_function, strict=True)
        ],
    }


def _figures(data: object) -> dict[str, object] | None:
    """Return those attributes of a finding's data that JSON can represent."""
    if data is None or not is_dataclass(data) or isinstance(data, type):
        return None
    return {name: value for name, value in asdict(data).items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _fix(fix: Fix) -> dict[str, object]:
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


def _incomplete(incomplete: IncompleteFunction) -> dict[str, object]:
    function = incomplete.function
    message = f"`{function.function}` may differ from the imported module"
    return {
        **_of_function(incomplete, INCOMPLETE, message),
        **_caveats(function.caveats, incomplete.cells),
    }


def _refused(refused: RefusedFunction) -> dict[str, object]:
    record = _of_function(refused, NOT_COMPILED, refused.function.message)
    return {**record, "target": refused.function.target}


def _of_function(
    subject: IncompleteFunction | RefusedFunction, code: str, message: str
) -> dict[str, object]:
    """Return an object about a whole function, in the format of findings."""
    function = subject.function
    return {
        "code": code,
        "message": message,
        **_about(subject.path, function.range, subject.cells),
        "function": function.function,
    }


def _about(path: str, range: Range, cells: Cells) -> dict[str, object]:
    """Return the other keys of a finding for what is not a finding."""
    return {
        "help": None,
        "notes": [],
        "data": None,
        "filename": path,
        **_places(range, cells),
        "url": None,
        "fix": None,
        "severity": Severity.INFORMATION.value,
    }


def _examined(file: ExaminedFile) -> dict[str, object]:
    """Return the object about a file, whose `functions` are in text order."""
    return {
        "code": EXAMINED,
        "message": totals([file]),
        **_about(file.path, Range(Position(0, 0), Position(0, 0)), file.cells),
        "origins": origins([file]),
        "functions": [
            {
                "function": function.function,
                **_places(function.range, file.cells),
                "examined": bool(function.origin),
                "origin": function.origin or None,
                "inputs": function.inputs or None,
                "kind": function.kind or None,
                "reason": function.reason or None,
            }
            for function in file.functions
        ],
    }


def _places(range: Range, cells: Cells) -> dict[str, object]:
    """Return where something is, in a notebook with its cell, as ruff does."""
    if not cells:
        return {"location": _location(range.start), "end_location": _location(range.end)}
    cell, start = cells.of_line(range.start.line)
    end = range.end.line - range.start.line + start
    return {
        "cell": cell,
        "location": _location(Position(start, range.start.column)),
        "end_location": _location(Position(end, range.end.column)),
    }


def _location(position: Position) -> dict[str, int]:
    return {"row": position.line + 1, "column": position.column + 1}


def as_github(
    reported: Sequence[Reported],
    incomplete: Sequence[IncompleteFunction] = (),
    refused: Sequence[RefusedFunction] = (),
    examined: Sequence[ExaminedFile] | None = None,
) -> str:
    """Return workflow commands, which GitHub shows on the lines of a pull request.

    There is one for each finding, each skipped statement and each function not compiled, and one
    for what was examined, if that is given: a warning if it is nothing.
    """
    commands = [*map(_command, reported), *map(_notice, _notes(incomplete, refused))]
    if examined is None:
        return "\n".join(commands)
    level = "notice" if origins(examined) else "warning"
    message = "; ".join(filter(None, (totals(examined), misses(examined))))
    summary = f"::{level} title=jaxsight ({EXAMINED})::{_data(message)}"
    return "\n".join([*commands, summary])


@dataclass(frozen=True, slots=True)
class _Note:
    """What is said about a line, and is not a finding."""

    code: str
    path: str
    cells: Cells
    line: int
    text: str

    @property
    def message(self) -> str:
        return _in_cell(self.cells, self.line, self.text)


def _notes(
    incomplete: Sequence[IncompleteFunction], refused: Sequence[RefusedFunction]
) -> Iterator[_Note]:
    """Yield each skipped statement once, and each function that was not compiled."""
    left_out = dict.fromkeys(
        (subject.path, subject.cells, caveat)
        for subject in incomplete
        for caveat in subject.function.caveats
    )
    for path, cells, caveat in left_out:
        yield _Note(INCOMPLETE, path, cells, caveat.range.start.line, caveats.reason(caveat))
    for subject in refused:
        function = subject.function
        line = function.range.start.line
        yield _Note(NOT_COMPILED, subject.path, subject.cells, line, function.message)


def _notice(note: _Note) -> str:
    line = "" if note.cells else f",line={note.line + 1}"
    location = f"file={_property(short_path(note.path))}{line}"
    return f"::notice title=jaxsight ({note.code}),{location}::{_data(note.message)}"


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
    message = _in_cell(reported.cells, finding.range.start.line, "\n".join(finding.lines))
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{GITHUB_COMMANDS[finding.severity]} {written}::{_data(message)}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(
    reported: Sequence[Reported],
    incomplete: Sequence[IncompleteFunction] = (),
    refused: Sequence[RefusedFunction] = (),
    examined: Sequence[ExaminedFile] = (),
) -> dict[str, object]:
    """Return a SARIF run, with the rules of its findings.

    Notifications of the tool, not results, are: what was examined (a warning if that is nothing),
    functions that were not, skipped statements, and functions that were not compiled.
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
                *map(_notification, _notes(incomplete, refused)),
                *map(_notification, _not_examined(examined)),
            ],
        }
    ]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _not_examined(examined: Sequence[ExaminedFile]) -> Iterator[_Note]:
    for file in examined:
        for function in file.not_examined:
            text = f"`{function.function}` is not examined: {function.reason}"
            yield _Note(NOT_EXAMINED, file.path, file.cells, function.range.start.line, text)


def _unlinked(text: str) -> str:
    """Return a message in which `x[0](y)` is not a link.

    SARIF has links in plain text too (2.1.0, section 3.11.6).
    """
    return _LINK.sub(r"\\](", visible(text))


def _notification(note: _Note) -> dict[str, object]:
    return {
        "descriptor": {"id": note.code},
        "level": "note",
        "message": {"text": _unlinked(note.message)},
        "locations": [_physical(note.path, note.cells, {"startLine": note.line + 1})],
    }


def _result(reported: Reported) -> dict[str, object]:
    start, end = reported.finding.range.start, reported.finding.range.end
    region = {
        "startLine": start.line + 1,
        "startColumn": start.column + 1,
        "endLine": end.line + 1,
        "endColumn": end.column + 1,
    }
    message = _in_cell(reported.cells, start.line, "\n".join(reported.finding.lines))
    return {
        "ruleId": reported.finding.code,
        "level": SARIF_LEVELS[reported.finding.severity],
        "message": {"text": _unlinked(message)},
        "locations": [_physical(reported.path, reported.cells, region)],
    }


def _physical(path: str, cells: Cells, region: Mapping[str, int]) -> dict[str, object]:
    """Return a location; lines of a cell are not lines of the notebook's file."""
    physical: dict[str, object] = {"artifactLocation": {"uri": Path(path).as_uri()}}
    if not cells:
        physical["region"] = dict(region)
    return {"physicalLocation": physical}


def _in_cell(cells: Cells, line: int, message: str) -> str:
    """Return a message that names the cell of a line, if there are cells."""
    return f"{cells.place(line)}: {message}" if cells else message
