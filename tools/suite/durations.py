"""How long tests take: `tests/durations.json`, written by `make durations`.

Of each file of tests and environment the number of cases, the seconds of all, and the seconds of
each that is long. Read for what counts as slow, and for which files run in one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tools.suite.results import Case

DURATIONS = Path(__file__).parents[2] / "tests" / "durations.json"

SLOW = 5.0
"""Seconds above which a case is slow (CONTRIBUTING.md) and has to be marked so."""
_LONG = 1.0
"""Seconds above which a case has a line of its own; most of 12,000 take less than 0.1."""
UNKNOWN = 10.0
"""Seconds that a file of tests is taken to need before it was measured: half of them need less."""


@dataclass(frozen=True)
class FileTimes:
    """The times of a file of tests, in seconds."""

    cases: int = 0
    seconds: float = 0.0
    long: Mapping[str, float] = field(default_factory=dict[str, float])
    """Those of cases that are long, by the part of their name after the file's."""

    @property
    def quick(self) -> float:
        """The seconds of the cases that are not slow."""
        return self.seconds - sum(each for each in self.long.values() if each > SLOW)


@cache
def read() -> dict[str, dict[str, FileTimes]]:
    """Return the times of files, by environment."""
    if not DURATIONS.is_file():
        return {}
    environments = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return {
        environment: {file: FileTimes(**times) for file, times in files.items()}
        for environment, files in environments.items()
    }


def of(environment: str, file: str) -> FileTimes:
    """Return the times of a file of tests; a guess for one that was not measured yet."""
    return read().get(environment, {}).get(file) or FileTimes(seconds=UNKNOWN)


def seconds(environment: str, name: str) -> float:
    """Return the seconds that a case took, 0 for one that is not long."""
    file, _, case = name.partition("::")
    return of(environment, file).long.get(case, 0.0)


def update(environment: str, cases: Iterable[Case]) -> None:
    """Write the times of an environment's cases, and forget files that are no longer there."""
    files: dict[str, list[Case]] = {}
    for case in cases:
        files.setdefault(case.file, []).append(case)
    known = read()
    times = {
        **known.get(environment, {}),
        **{file: _times(of_file) for file, of_file in files.items()},
    }
    root = DURATIONS.parents[1]
    known[environment] = {file: times[file] for file in sorted(times) if (root / file).is_file()}
    DURATIONS.write_text(_text(known), encoding="utf-8")


def _times(cases: list[Case]) -> FileTimes:
    long = {
        case.name.partition("::")[2]: round(case.seconds, 1)
        for case in sorted(cases, key=lambda case: case.name)
        if case.seconds > _LONG
    }
    return FileTimes(len(cases), round(sum(case.seconds for case in cases), 1), long)


def _text(environments: Mapping[str, Mapping[str, FileTimes]]) -> str:
    """JSON with a line a file, or a case that is long, so that a change shows as one."""
    blocks = []
    for environment in sorted(environments):
        rows = []
        for file, times in environments[environment].items():
            head = f'    {json.dumps(file)}: {{"cases": {times.cases}, "seconds": {times.seconds}'
            long = ",\n".join(f"      {json.dumps(c)}: {s}" for c, s in times.long.items())
            rows.append(f'{head}, "long": {{\n{long}\n    }}}}' if long else f"{head}}}")
        blocks.append(f"  {json.dumps(environment)}: {{\n" + ",\n".join(rows) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"
