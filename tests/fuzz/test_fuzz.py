"""A few cases of each fuzzer; `python -m tools.fuzz` runs more."""

from __future__ import annotations

import sys

import pytest

from tools.fuzz.subjects import SUBJECTS

QUICK = {"bytes": 100, "docstrings": 150, "settings": 150, "hlo": 60, "cache": 40}
SLOW = {"messages": 100, "commands": 60, "positions": 60, "notebooks": 80, "frames": 200}
KILLS = 15


@pytest.mark.parametrize("subject", QUICK)
def test_nothing_that_is_read_does_harm(subject: str) -> None:
    report = SUBJECTS[subject](QUICK[subject], 1)
    assert report.cases >= QUICK[subject]
    assert report.failures == [], str(report)


@pytest.mark.slow
@pytest.mark.parametrize("subject", SLOW)
def test_nothing_that_is_said_does_harm(subject: str) -> None:
    report = SUBJECTS[subject](SLOW[subject], 1)
    assert report.cases >= SLOW[subject]
    assert report.failures == [], str(report)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are found otherwise")
def test_a_window_goes_on_whichever_process_ends_and_leaves_nothing() -> None:
    report = SUBJECTS["kills"](KILLS, 1)
    assert report.cases == KILLS
    assert report.failures == [], str(report)
