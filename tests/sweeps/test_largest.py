"""The largest size that fits, as the compiler says (`tests/sweeps/largest.py`)."""

from __future__ import annotations

import pytest

from tests.searches import part
from tests.sweeps.largest import search, verdict
from tests.sweeps.programs import PROGRAMS


@pytest.mark.parametrize("name", ["softmax", "gram", "step", "donated", "barred"])
def test_the_largest_size_is_that_of_the_compiler(name: str) -> None:
    assert verdict(name, search(name, "cpu"), "cpu") == ""


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.parametrize("name", part([*PROGRAMS]))
def test_the_largest_size_of_each_program_is_that_of_the_compiler(name: str) -> None:
    assert verdict(name, search(name, "cpu"), "cpu") == ""
