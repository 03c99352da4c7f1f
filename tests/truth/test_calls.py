"""Calls in programs drawn by lot are those of a recorded run; `python -m tests.truth calls` more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.truth import calls, programs

_SEEDS = (0, 1, 34)
"""Programs with each kind of statement between them."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
def test_calls_are_those_of_a_recorded_run(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "program" / "train.py"
    file.parent.mkdir()
    file.write_text(programs.program(seed))
    compared = calls.measured([file], sys.executable)
    assert len(compared) > 3
    assert [each for each in compared if not each.is_same] == []
