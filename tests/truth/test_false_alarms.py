"""No error is shown in programs that run to their end; `python -m tools.false_alarms` tries more."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tools.false_alarms import programs, with_data
from tools.false_alarms.__main__ import alarms, written

_EVERY, _LEAST = 4, 12
"""Each reader of data is in four programs: one of them is tried, and some without data."""


@pytest.mark.slow
@pytest.mark.asyncio
async def test_programs_that_run_show_no_errors(tmp_path: Path) -> None:
    chosen = [*itertools.islice(with_data.texts(), 1, None, _EVERY)]
    chosen += programs.of_lot(seed=100, count=2)
    names = written(tmp_path, chosen)
    assert len(names) == len(chosen) > _LEAST
    assert await alarms(tmp_path, names) == []
