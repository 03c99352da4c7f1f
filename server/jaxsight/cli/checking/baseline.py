"""Baselines: files that list a project's accepted findings, so that `check` reports only new ones.

A finding is identified by its file, its code and the text of its line, so that it still matches
when lines move; equal ones are counted.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.files import reading

Entry = tuple[str, str, str]


def write(file: Path, reported: Sequence[Reported]) -> None:
    """Write the findings to a baseline file.

    Raises:
        CommandError: the file cannot be written.
    """
    counts = Counter(_entry(finding, file) for finding in reported)
    rows = [
        {"file": path, "code": code, "line": line, "count": count}
        for (path, code, line), count in sorted(counts.items())
    ]
    text = json.dumps({"version": 1, "findings": rows}, indent=1) + "\n"
    write_file(file, text.encode())


def compare(file: Path, reported: Sequence[Reported]) -> tuple[list[Reported], int]:
    """Return the findings that are not in the baseline, and how many of its own are gone.

    Raises:
        CommandError: the file cannot be read as a baseline.
    """
    try:
        rows = json.loads(reading.text(file))["findings"]
        expected = Counter(
            {(row["file"], row["code"], row["line"]): int(row["count"]) for row in rows}
        )
    except (reading.UnreadableError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(
            f"invalid baseline file {file} ({error}); "
            f"create one with `jaxsight check --write-baseline {file}`"
        ) from error
    new = []
    for finding in reported:
        entry = _entry(finding, file)
        if expected[entry] > 0:
            expected[entry] -= 1
        else:
            new.append(finding)
    return new, expected.total()


def _entry(reported: Reported, file: Path) -> Entry:
    lines = reported.source.splitlines()
    at = reported.finding.range.start.line
    line = lines[at].strip() if at < len(lines) else ""
    path = os.path.relpath(reported.path, file.resolve().parent)
    return Path(path).as_posix(), reported.finding.code, line
