"""A plugin of pytest, `-p tools.faults.pytest_lines`: the lines of each test are recorded again."""

from __future__ import annotations

import pytest

from tools.faults.lines import next_test


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    next_test()
