"""Merge the JUnit reports of pytest and node into a summary line like pytest's, and exit status.

Usage: summary.py REPORT.xml... ; a report that is missing or empty means that its run died, and
fails.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

COUNTED = ("tests", "failures", "errors", "skipped")


def main(reports: list[Path]) -> int:
    """Print each report's line and the merged one; 0 when all ran and none failed."""
    total = dict.fromkeys(COUNTED, 0)
    seconds = 0.0
    died = []
    for report in reports:
        try:
            root = ElementTree.parse(report).getroot()
        except (OSError, ElementTree.ParseError) as error:
            print(f"{report.stem}: no report ({error})")
            died.append(report.stem)
            continue
        counts, took = counted(root)
        print(f"{report.stem}: {line(counts, took)}")
        seconds += took
        for name in COUNTED:
            total[name] += counts[name]
    if died:
        print(f"did not finish: {', '.join(died)}")
    print(f"===== {line(total, seconds)} =====")
    return 1 if died or total["failures"] or total["errors"] or not total["tests"] else 0


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
