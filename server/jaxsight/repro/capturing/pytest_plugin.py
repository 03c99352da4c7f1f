"""A pytest plugin that keeps a case for each failing test that reached JAX.

`pytest --jaxsight-repro[=FOLDER]` with jaxsight in the tests' environment;
`jaxsight repro run --pytest TEST` registers the plugin itself. Each case is a folder named after
its test; the repros are written at the end of the session.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

DEFAULT_FOLDER = "jaxsight-repros"


class Plugin:
    """Captures each test in a case of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases: list[tuple[str, Path]] = []
        """Failed tests that reached JAX, with their cases."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None]:
        """Run a test under capture."""
        from jaxsight.repro.capturing.run import Capture

        folder = self.folder / _file_name(item.nodeid)
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


def _file_name(test: str) -> str:
    """Return the name of a test as that of a file: `test_x-test_loss-f32`."""
    return re.sub(r"[^\w-]+", "-", test.replace(".py::", "::"))[-120:].strip("-")


class _Writer(Plugin):
    """Also writes the repros, at the end of the session."""

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write a repro for each case, and list the files."""
        from jaxsight.repro.emit.from_case import emit_in_fresh_process

        if self.cases:
            terminalreporter.section("repros of failing tests")
        for test, folder in self.cases:
            line = emit_in_fresh_process(sys.executable, folder, folder.with_suffix(".py"))
            terminalreporter.write_line(f"{test}: {line}")


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    parser.addoption(
        "--jaxsight-repro",
        nargs="?",
        const=DEFAULT_FOLDER,
        metavar="FOLDER",
        help="write a repro for each failing test that reached JAX",
    )


def pytest_configure(config: Any) -> None:
    """Register the plugin if the option is there."""
    folder = config.getoption("--jaxsight-repro")
    if folder:
        config.pluginmanager.register(_Writer(Path(folder).absolute()), "jaxsight-repro-cases")
