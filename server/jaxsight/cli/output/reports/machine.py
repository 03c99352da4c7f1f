"""Findings as JSON with ruff's keys.

As in ruff's output, lines and columns count from 1, columns count characters, and ends are
exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path

from jaxsight.cli.output.reports.reported import (
    EXAMINED,
    INCOMPLETE,
    NO_FUNCTION,
    NOT_COMPILED,
    CheckResult,
    ExaminedFile,
    IncompleteFunction,
    RefusedFunction,
    Reported,
    misses,
    origins,
    totals,
)
from jaxsight.cli.sources.notebooks import NO_CELLS, Cells
from jaxsight.features import caveats
from jaxsight.features.fixes.scheduler import fix_record, location
from jaxsight.rules.finding import Severity
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Position, Range
from jaxsight.text.units import count


def as_json(
    total: CheckResult, pythons: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """Return a list of objects, as `ruff check --output-format json` writes it.

    Besides ruff's keys there are `severity`, and `complete` and `caveats` of the function.
    A function with skipped statements has an object of its own with the code `incomplete`, and one
    that was not compiled has one with `not-compiled`. A file with functions that use JAX has one
    with `examined`, which lists them. Without findings and examined functions there is one with
    `nothing-examined`.
    `python` is the Python environment that traced the file, from `pythons`.
    """
    objects = [
        *map(_object, total.reported),
        *map(_incomplete, total.incomplete),
        *map(_refused, total.refused),
        *map(_examined, total.examined),
    ]
    if total.files and not total.reported and not origins(total.examined):
        objects.append(_nothing_examined(total))
    if pythons is None:
        return objects
    return [{**record, "python": pythons.get(str(record["filename"]))} for record in objects]


def _object(reported: Reported) -> dict[str, object]:
    finding, data, figures = reported.finding, reported.finding.data, None
    if is_dataclass(data) and not isinstance(data, type):  # what of it JSON can represent
        figures = {name: value for name, value in asdict(data).items() if _is_plain(value)}
    return {
        "code": finding.code,
        "message": finding.message,
        "help": finding.help or None,
        "notes": list(finding.notes),
        "data": figures,
        "filename": reported.path,
        **_places(finding.range, reported.cells),
        "url": finding.url or None,
        "fix": fix_record(reported.fix) if reported.fix is not None else None,
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


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


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


def _nothing_examined(total: CheckResult) -> dict[str, object]:
    """Return the object about the whole check, which is not to be taken for one without findings.

    Its file is the working folder.
    """
    return {
        "code": NO_FUNCTION,
        "message": misses(total.examined)
        or f"no functions to examine in {count(total.files, 'file')}",
        **_about(str(Path.cwd()), Range(Position(0, 0), Position(0, 0)), NO_CELLS),
        "help": "see `reason` of each function"
        if total.examined
        else "pass files with functions that use JAX",
        "severity": Severity.WARNING.value,
    }


def _places(range: Range, cells: Cells) -> dict[str, object]:
    """Return where something is, in a notebook with its cell, as ruff does."""
    if not cells:
        return {"location": location(range.start), "end_location": location(range.end)}
    cell, start = cells.of_line(range.start.line)
    end = range.end.line - range.start.line + start
    return {
        "cell": cell,
        "location": location(Position(start, range.start.column)),
        "end_location": location(Position(end, range.end.column)),
    }
