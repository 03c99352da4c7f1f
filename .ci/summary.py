"""Merge JUnit reports into a table of where the time went, a summary line, and an exit status.

The line is like pytest's; the reports are those of pytest and node.
Usage: summary.py REPORT.xml... ; a report that is missing or empty means that its run died, and
fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

COUNTED = ("tests", "failures", "errors", "skipped")
LONG = 5.0
"""Seconds from which a case is to be marked `slow` (CONTRIBUTING.md); a busy machine may take as
long for others, so this is printed and fails nothing.
"""
MOST = 25
"""Cases that are printed as long, as pytest does."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a report, with the seconds that it and its fixtures took."""

    name: str
    seconds: float
    is_slow: bool
    """Whether it is marked so."""

    @property
    def folder(self) -> str:
        """`tests/FOLDER` of pytest's cases, as their names begin; `panel` of node's."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "tests" and len(parts) > 2 else "panel"


def main(reports: list[Path]) -> int:
    """Print the tables, each report's line and the merged one; 0 when all ran and none failed."""
    total = dict.fromkeys(COUNTED, 0)
    seconds = 0.0
    died = []
    cases: list[Case] = []
    lines = []
    for report in reports:
        try:
            root = ElementTree.parse(report).getroot()
        except (OSError, ElementTree.ParseError) as error:
            lines.append(f"{report.stem}: no report ({error})")
            died.append(report.stem)
            continue
        counts, took = counted(root)
        cases += cases_of(root)
        lines.append(f"{report.stem}: {line(counts, took)}")
        seconds += took
        for name in COUNTED:
            total[name] += counts[name]
    print("\n".join([*by_folder(cases), *unmarked(cases), *lines]))
    if died:
        print(f"did not finish: {', '.join(died)}")
    if (seed := os.environ.get("JAXSIGHT_SEARCH", "all")) != "all":
        again = f"JAXSIGHT_SEARCH={seed} repeats it, JAXSIGHT_SEARCH=all is whole"
        print(f"searches: a quarter of each; {again}")
    print(f"===== {line(total, seconds)} =====")
    return 1 if died or total["failures"] or total["errors"] or not total["tests"] else 0


def cases_of(root: ElementTree.Element) -> Iterator[Case]:
    """Yield the cases of a report."""
    for case in root.iter("testcase"):
        is_slow = any(each.get("name") == "slow" for each in case.iter("property"))
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        yield Case(name, float(case.get("time", 0)), is_slow)


def by_folder(cases: list[Case]) -> Iterator[str]:
    """Yield a table of the folders, those that took longest first."""
    times: dict[str, list[float]] = {}
    for case in cases:
        times.setdefault(case.folder, []).append(case.seconds)
    yield f"{'folder':<14}{'seconds':>9}{'cases':>8}"
    for folder, took in sorted(times.items(), key=lambda item: -sum(item[1])):
        yield f"{folder:<14}{sum(took):>9.0f}{len(took):>8}"


def unmarked(cases: list[Case]) -> Iterator[str]:
    """Yield the cases that take long and are not marked `slow`, those that took longest first."""
    long = [case for case in cases if case.seconds >= LONG and not case.is_slow]
    long = [case for case in long if case.folder not in ("panel", "vscode")]
    for case in sorted(long, key=lambda case: -case.seconds)[:MOST]:
        yield f"not marked slow: {case.seconds:.0f} s {case.name}"


def counted(root: ElementTree.Element) -> tuple[dict[str, int], float]:
    """Return the counts of a report, and its seconds.

    Node's has no suites, so there the tests themselves are counted.
    """
    suites = list(root.iter("testsuite"))
    if suites:
        counts = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in COUNTED}
        return counts, sum(float(suite.get("time", 0)) for suite in suites)
    tests = list(root.iter("testcase"))
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: sum(t.find(kind) is not None for t in tests) for name, kind in kinds.items()}
    return {"tests": len(tests), **counts}, sum(float(test.get("time", 0)) for test in tests)


def line(counts: dict[str, int], seconds: float) -> str:
    """`12 passed, 1 skipped in 3.45s`, as pytest writes it."""
    bad = counts["failures"] + counts["errors"] + counts["skipped"]
    parts = [
        (counts["failures"], "failed"),
        (counts["tests"] - bad, "passed"),
        (counts["skipped"], "skipped"),
        (counts["errors"], "errors"),
    ]
    said = ", ".join(f"{count} {word}" for count, word in parts if count) or "no tests ran"
    return f"{said} in {seconds:.2f}s"


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
