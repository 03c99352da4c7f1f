"""Report recompilations in a run of the user's tests: `jaxsight check --calls TEST…`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.files import reading
from jaxsight.rules import RULES
from jaxsight.rules.finding import finding_of
from jaxsight.rules.recompilation import Miss, read
from jaxsight.rules.rule import Violation
from jaxsight.rules.selection import selected
from jaxsight.source.text import Range

PLUGIN = Path(__file__).parents[2] / "recompiling"
_NO_TESTS = 5
"""The exit status of pytest when it found no tests (`pytest.ExitCode`)."""
_FAILED = (0, 1)
"""The exit statuses of pytest when tests ran, passed or not (`pytest.ExitCode`)."""


def recompiled(
    python: str, tests: Sequence[str], select: tuple[str, ...], ignore: tuple[str, ...]
) -> list[Reported]:
    """Return the findings of a run of tests, in files below this folder.

    Args:
        python: the user's interpreter, which must have pytest.
        tests: the arguments for pytest.

    Raises:
        CommandError: the tests could not be run; the message ends with pytest's last lines.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "misses.json")
        paths = [str(PLUGIN), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "JAXSIGHT_RECOMPILING": str(file),
        }
        command = [python, "-m", "pytest", "-q", "-p", "jaxsight_recompiling", *tests]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in _FAILED or not reading.is_file(file):
            last_lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            reason = "no tests were found" if done.returncode == _NO_TESTS else " ".join(last_lines)
            raise CommandError(f"cannot run the tests with {python}: {reason}")
        records = json.loads(reading.text(file))
    misses = [miss for record in records if (miss := read(record["message"])) is not None]
    calls: dict[tuple[str, int, str], list[Miss]] = defaultdict(list)
    for miss in misses:
        calls[miss.file, miss.line, miss.function].append(miss)
    here = Path.cwd()
    return [
        _reported(code, file, line, violation)
        for (file, line, function), misses_of_call in calls.items()
        if reading.is_file(file) and here in Path(file).resolve().parents
        for code, rule in RULES.items()
        if rule.explain_misses is not None and selected(code, select, ignore)
        for violation in rule.explain_misses(function, misses_of_call)
    ]


def new_findings(found: Sequence[Reported], known: Sequence[Reported]) -> Iterator[Reported]:
    """Yield the findings of a run that the text or a trace does not show at their lines already."""

    def place(each: Reported) -> tuple[str, int, Path]:
        return each.code, each.finding.range.start.line, Path(each.path).resolve()

    places = set(map(place, known))
    yield from (each for each in found if place(each) not in places)


def _reported(code: str, file: str, line: int, violation: Violation) -> Reported:
    """Return a finding at a line, which counts from 1."""
    source = reading.text(file, strict=False)
    lines = source.splitlines()
    text = lines[line - 1] if line <= len(lines) else ""
    range = Range.of_line(line - 1, text)
    finding = finding_of(code, range, violation.message, help=violation.help, notes=violation.notes)
    return Reported(file, source, replace(finding, data=violation.data))
