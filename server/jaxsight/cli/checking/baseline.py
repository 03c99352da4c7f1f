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
from jaxsight.cli.output.printing import Printer, write_file
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.files import reading
from jaxsight.text import units
from jaxsight.text.inert import one_line

Entry = tuple[str, str, str]


def write(file: Path, reported: Sequence[Reported]) -> None:
    """Write the findings to a baseline file, and print how many they are.

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
    Printer().print(f"Wrote {units.count(len(reported), 'finding')} to {one_line(str(file))}.")


def new(file: Path, reported: Sequence[Reported]) -> list[Reported]:
    """Return the findings that are not in a baseline, and print how many of its own are gone.

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
    found = []
    for finding in reported:
        expected[entry := _entry(finding, file)] -= 1
        if expected[entry] < 0:
            found.append(finding)
    expected = +expected  # those that are left
    if gone := expected.total():
        note = f"{units.count(gone, 'finding')} in {one_line(str(file))} no longer reported."
        Printer(stderr=True, wrap=True).print(note)
    return found


def _entry(reported: Reported, file: Path) -> Entry:
    lines = reported.source.splitlines()
    at = reported.finding.range.start.line
    line = lines[at].strip() if at < len(lines) else ""
    path = os.path.relpath(reported.path, file.resolve().parent)
    return Path(path).as_posix(), reported.finding.code, line
