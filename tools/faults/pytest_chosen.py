"""A plugin of pytest that runs chosen tests in their order, and writes what becomes of each.

Self-contained: it is linked into the environment of the scratch tree as `faults_chosen`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chosen", help="a file with the node ids of the tests to run")
    parser.addoption("--outcomes", help="the file to append what happens to")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Outcomes(Path(config.getoption("--outcomes"))))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = Path(config.getoption("--chosen")).read_text(encoding="utf-8").splitlines()
    order = {name: number for number, name in enumerate(names)}
    others = [item for item in items if item.nodeid not in order]
    if others:
        config.hook.pytest_deselected(items=others)
    items[:] = sorted(
        (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
    )


class _Outcomes:
    """Writes `WORD NODEID` at once: a process that hangs or dies has said which test did it."""

    def __init__(self, path: Path) -> None:
        self._output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("uncollected", report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("began", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write("failed", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write("ended", nodeid)

    def _write(self, word: str, nodeid: str) -> None:
        os.write(self._output, f"{word} {nodeid}\n".encode())
