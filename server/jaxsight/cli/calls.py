"""Report recompilations in a run of the user's tests: `jaxsight check --calls TEST…`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.reports import Reported
from jaxsight.files import reading
from jaxsight.rules.finding import finding_of
from jaxsight.rules.recompilation import Recompiled, find, read
from jaxsight.rules.selection import selected
from jaxsight.source.text import Position, Range

PLUGIN = Path(__file__).parents[1] / "recompiling"
_NO_TESTS = 5
_FAILED = (0, 1)
"""The exit statuses of pytest when tests ran, passed or not."""


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
            words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            why = "no tests were found" if done.returncode == _NO_TESTS else " ".join(words)
            raise CommandError(f"cannot run the tests with {python}: {why}")
        told = json.loads(reading.text(file))
    misses = [miss for each in told if (miss := read(each["message"])) is not None]
    here = Path.cwd()
    return [
        _reported(one)
        for one in find(misses)
        if reading.is_file(one.file)
        and here in Path(one.file).resolve().parents
        and selected(one.code, select, ignore)
    ]


def _reported(one: Recompiled) -> Reported:
    source = reading.text(one.file, strict=False)
    lines = source.splitlines()
    text = lines[one.line - 1] if one.line <= len(lines) else ""
    start = len(text) - len(text.lstrip())
    place = Range(Position(one.line - 1, start), Position(one.line - 1, len(text.rstrip())))
    noticed = one.noticed
    found = finding_of(one.code, place, noticed.message, help=noticed.help, notes=noticed.notes)
    return Reported(one.file, source, replace(found, data=noticed.data))
