"""What runs of tests say of their cases, and the tables and the line that are made of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

MOST = 25
"""Cases that are named as slow and not marked: more are one cause, such as a busy machine."""

PASSED, FAILED, SKIPPED, ERROR = "passed", "failed", "skipped", "error"
RERUN = "rerun"
"""Failed beside others, and passed by itself."""


@dataclass(frozen=True)
class Case:
    """A case that was run, with the seconds that it and its fixtures took."""

    name: str
    """As pytest names it: `tests/text/test_names.py::test_a[b]`."""
    outcome: str
    seconds: float
    is_slow: bool = False
    """Whether it is marked so."""

    @property
    def file(self) -> str:
        """The path of the file that has it."""
        return self.name.partition("::")[0]

    @property
    def folder(self) -> str:
        """`FOLDER` of `tests/FOLDER/…`; `panel` of the panel's cases, which node runs."""
        parts = self.name.split("/")
        return parts[1] if parts[0] == "tests" and len(parts) > 2 else "panel"


def of_pytest(log: Path) -> list[Case]:
    """Return the cases of a log that `tools.suite.plugin` wrote, also of a run that died."""
    if not log.is_file():
        return []
    cases = []
    for row in log.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):  # of a process that ended while it wrote
            cases.append(Case(**json.loads(row)))
    return cases


def of_node(report: Path) -> list[Case]:
    """Return the cases of a JUnit report of node; none where there is none."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    kinds = {"failure": FAILED, "error": ERROR, "skipped": SKIPPED}
    return [
        Case(
            f"panel::{case.get('name', '')}",
            next((kinds[kind] for kind in kinds if case.find(kind) is not None), PASSED),
            float(case.get("time", 0)),
        )
        for case in root.iter("testcase")
    ]


def by_folder(cases: Iterable[Case]) -> Iterator[str]:
    """Yield a table of the folders, those that took longest first."""
    times: dict[str, list[float]] = {}
    for case in cases:
        times.setdefault(case.folder, []).append(case.seconds)
    yield f"{'folder':<14}{'seconds':>9}{'cases':>8}"
    for folder, took in sorted(times.items(), key=lambda item: -sum(item[1])):
        yield f"{folder:<14}{sum(took):>9.0f}{len(took):>8}"


def line(cases: Iterable[Case], seconds: float) -> str:
    """`12 passed, 1 skipped in 3.45s`, as pytest writes it."""
    outcomes = [case.outcome for case in cases]
    words = {
        FAILED: "failed",
        PASSED: "passed",
        SKIPPED: "skipped",
        ERROR: "errors",
        RERUN: "rerun",
    }
    said = [f"{n} {word}" for outcome, word in words.items() if (n := outcomes.count(outcome))]
    return f"{', '.join(said) or 'no tests ran'} in {seconds:.2f}s"
