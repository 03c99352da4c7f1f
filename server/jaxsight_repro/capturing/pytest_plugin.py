"""A pytest plugin that keeps a case for each failing test that reached JAX.

`jaxsight repro run --pytest TEST` registers it; with `--jaxsight-repro` it is
`jaxsight_repro.pytest_plugin` that does. Each case is a folder named after its test.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from jaxsight_repro.capturing.capture import Capture


class Plugin:
    """Captures each test in a case of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases: list[tuple[str, Path]] = []
        """Failed tests that reached JAX, with their cases."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None]:
        """Run a test under capture."""
        test = item.nodeid.replace(".py::", "::")
        folder = self.folder / re.sub(r"[^\w-]+", "-", test)[-120:].strip("-")
        shutil.rmtree(folder, ignore_errors=True)
        capture = Capture(folder)
        capture.begin()
        try:
            yield
        except BaseException as error:
            ended = capture.end(error)
            if ended.program is not None or ended.at_trace:
                self.cases.append((item.nodeid, folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        capture.end(None)
        shutil.rmtree(folder, ignore_errors=True)
