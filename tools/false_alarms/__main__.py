"""Count the false alarms: `python -m tools.false_alarms [--folder FOLDER] [--count N] [--seed N]`.

A program counts if it runs to its end in plain Python. Then the data that some read is removed,
each program is opened, and every finding of the severity error is a false alarm.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxsight.rules.finding import Severity
from tests.quiet import QUIET
from tests.sessions import session_without_spare
from tools.false_alarms import programs, with_data


def written(folder: Path, chosen: Sequence[tuple[str, str]]) -> dict[Path, str]:
    """Write programs, each into a folder with data; return the names of those that end well."""
    names: dict[Path, str] = {}
    for number, (name, text) in enumerate(chosen):
        path = folder / f"program_{number}" / "program.py"
        path.parent.mkdir()
        path.write_text(text)
        with_data.write_data(path.parent)
        names[path] = name
    done = subprocess.run(
        [sys.executable, "-m", "tools.false_alarms.plain"],
        input="\n".join(map(str, names)),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **with_data.ROWS},
    )
    for path in names:
        with_data.remove_data(path.parent)
    return {Path(line): names[Path(line)] for line in done.stdout.splitlines()}


async def alarms(folder: Path, names: dict[Path, str], *, tells: bool = False) -> list[str]:
    """Return the errors that are shown in programs."""
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "timeouts": {"statement": 60}}
    session.configure([str(folder)], settings)
    found: list[str] = []
    for number, (path, name) in enumerate(names.items()):
        session.open(str(path), path.read_text())
        await session.background.settle(str(path), patience=120)
        every = (await session.report(str(path))).reported
        errors = [f"{name}: {f.code} {f.message}" for f in every if f.severity is Severity.ERROR]
        found += errors
        session.close(str(path))
        if tells:
            print(f"{number + 1}/{len(names)} {name}", *errors, sep="\n    ", flush=True)
    await session.aclose()
    return found


def main() -> int:
    """Measure, and print each false alarm."""
    os.environ.setdefault("JAXSIGHT_TRUST", "always")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--count", type=int, default=200, help="programs without data")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    others = [*programs.of_docstrings(arguments.seed), *programs.of_lot(arguments.seed, 12)]
    others += [each for folder in arguments.folder for each in programs.of_folder(folder)]
    others = [*programs.suitable(others)]
    random.Random(arguments.seed).shuffle(others)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        names = written(folder, [*with_data.texts(), *others[: arguments.count]])
        found = asyncio.run(alarms(folder, names, tells=True))
    print(f"{len(found)} false alarms in {len(names)} programs that run in plain Python")
    for each in found:
        print(f"  {each}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
