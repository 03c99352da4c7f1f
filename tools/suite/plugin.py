"""A plugin of pytest, `-p tools.suite.plugin`: leaves out what a run does not hold, and logs cases.

The log has a line for each case as soon as it ended, so that a run that dies tells what it did, and
the name of the one that was running (`.now`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.suite import durations
from tools.suite.results import ERROR, FAILED, PASSED, SKIPPED
from tools.suite.selection import Gate, Near, Traits


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gate", metavar="PACKAGES", help="hold the gate, with all of these packages")
    parser.addoption(
        "--near", nargs=2, metavar="PACKAGES", help="hold these packages, and quick tests of those"
    )
    parser.addoption("--log", type=Path, help="write a line for each case here")
    parser.addoption("--environment", default="", help="whose durations say what is slow")
    parser.addoption("--without", type=Path, help="leave out the cases that this file names")


def traits(item: pytest.Item, environment: str) -> Traits:
    """Return what a test says of itself."""
    marked = {mark.name for mark in item.iter_markers()}
    return Traits(
        item.path.relative_to(item.config.rootpath).as_posix(),
        "slow" in marked or durations.seconds(environment, item.nodeid) > durations.SLOW,
        "search" in marked,
        "smoke" in marked,
    )


def _names(option: str) -> frozenset[str]:
    return frozenset(option.split(",")) - {""}


# After the marks that conftest files add.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    option = config.getoption
    held: Gate | Near | None = None
    if option("--gate") is not None:
        held = Gate(_names(option("--gate")))
    elif option("--near"):
        held = Near(*map(_names, option("--near")))
    without = set[str]()
    if option("--without"):
        without = {*option("--without").read_text(encoding="utf-8").splitlines()}
    environment = option("--environment")
    left_out = [
        item
        for item in items
        if item.nodeid in without
        or (held is not None and not held.holds(traits(item, environment)))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = {*left_out}
        items[:] = [item for item in items if item not in gone]


def pytest_configure(config: pytest.Config) -> None:
    if log := config.getoption("--log"):
        config.pluginmanager.register(_Log(log))


class _Log:
    """Writes what became of each case."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now = path.with_suffix(".now")
        self._slow = set[str]()
        self._parts: dict[str, list[pytest.TestReport]] = {}
        self._written = set[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        self._slow = {item.nodeid for item in items if item.get_closest_marker("slow")}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._now.write_text(nodeid, encoding="utf-8")

    def pytest_runtest_logfinish(self) -> None:
        self._now.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = self._parts.setdefault(report.nodeid, [])
        parts.append(report)
        if report.when == "teardown":
            self._write(report.nodeid, _outcome(parts), sum(part.duration for part in parts))
            del self._parts[report.nodeid]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # A process that ends in another way than pytest's leaves no such file.
        left = [item.nodeid for item in session.items if item.nodeid not in self._written]
        self._path.with_suffix(".left").write_text("\n".join(left), encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, ERROR, 0.0)

    def _write(self, name: str, outcome: str, seconds: float) -> None:
        self._written.add(name)
        row = {
            "name": name,
            "outcome": outcome,
            "seconds": round(seconds, 3),
            "is_slow": name in self._slow,
        }
        with self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + os.linesep)


def _outcome(parts: list[pytest.TestReport]) -> str:
    for part in parts:
        if part.failed:
            return FAILED if part.when == "call" else ERROR
    return SKIPPED if any(part.skipped for part in parts) else PASSED
