"""A few cases of each fuzzer; `python -m tools.fuzz` runs more."""

from __future__ import annotations

import sys

import pytest

from tests.searches import part
from tools.fuzz.subjects import SUBJECTS

QUICK = {"bytes": 100, "docstrings": 150, "settings": 150, "hlo": 60, "cache": 40}
SLOW = {"messages": 100, "commands": 60, "positions": 60, "notebooks": 80, "frames": 200}
KILLS = 15


@pytest.mark.search
@pytest.mark.parametrize("subject", QUICK)
def test_nothing_that_is_read_does_harm(subject: str) -> None:
    count = len(part(range(QUICK[subject])))
    report = SUBJECTS[subject](count, 1)
    assert report.cases >= count
    assert report.failures == [], str(report)


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.parametrize("subject", SLOW)
def test_nothing_that_is_said_does_harm(subject: str) -> None:
    count = len(part(range(SLOW[subject])))
    report = SUBJECTS[subject](count, 1)
    assert report.cases >= count
    assert report.failures == [], str(report)


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are found otherwise")
def test_a_window_goes_on_whichever_process_ends_and_leaves_nothing() -> None:
    count = len(part(range(KILLS)))
    report = SUBJECTS["kills"](count, 1)
    assert report.cases == count
    assert report.failures == [], str(report)
