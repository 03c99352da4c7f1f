"""What continuous integration leaves out and what it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.searches import PARTS, VARIABLE, part

SUMMARY = Path(__file__).parents[2] / ".ci" / "summary.py"
REPORT = """\
<testsuites><testsuite tests="3" failures="{failures}" errors="0" skipped="1" time="12.5">
<testcase classname="tests.cli.test_a" name="test_b[1.5]" time="7.0" />
<testcase classname="tests.cli.test_a" name="test_c" time="5.0">
<properties><property name="slow" value="True" /></properties></testcase>
<testcase classname="tests.lsp.test_d" name="test_e" time="0.5"><skipped /></testcase>
</testsuite></testsuites>
"""


def summary(*reports: Path) -> tuple[int, list[str]]:
    """Return the exit status and the lines."""
    command = [sys.executable, str(SUMMARY), *map(str, reports)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("count", [4, 5, 57])
def test_four_days_after_each_other_hold_a_whole_search(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    cases = range(count)
    held: list[int] = []
    for day in range(20_800, 20_800 + PARTS):
        monkeypatch.setenv(VARIABLE, str(day))
        held += part(cases)
    assert sorted(held) == list(cases)


def test_a_short_search_is_whole_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "20801")
    assert part("abc") == [*"abc"]


@pytest.mark.parametrize("value", ["", "all"])
def test_by_hand_a_search_is_whole(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert part("abcdef") == [*"abcdef"]


def test_the_summary_says_where_the_time_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "20800")
    report = tmp_path / "some.xml"
    report.write_text(REPORT.format(failures=0))
    assert summary(report) == (
        0,
        [
            "folder          seconds   cases",
            "cli                  12       2",
            "lsp                   0       1",
            "not marked slow: 7 s tests.cli.test_a.test_b[1.5]",
            "some: 2 passed, 1 skipped in 12.50s",
            "searches: a quarter of each; JAXSIGHT_SEARCH=20800 repeats it, JAXSIGHT_SEARCH=all is whole",
            "===== 2 passed, 1 skipped in 12.50s =====",
        ],
    )


def test_a_failure_and_a_run_that_died_fail(tmp_path: Path) -> None:
    report = tmp_path / "some.xml"
    report.write_text(REPORT.format(failures=1))
    assert summary(report)[0] == 1
    report.write_text(REPORT.format(failures=0))
    status, lines = summary(report, tmp_path / "none.xml")
    assert status == 1
    assert "did not finish: none" in lines
