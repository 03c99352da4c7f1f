from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxsight.workers.confinement import start
from tests.tracer.isolation.driver import Driver


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One tracer for the tests of a module: each leaves it fit for the next, which is what they
    test.
    """
    driver = Driver(tmp_path_factory.mktemp("shared"))
    yield driver
    assert driver.close() == 0


@pytest.fixture
def tracer(running: Driver, tmp_path: Path) -> Driver:
    """The module's tracer, in a project of the test's own."""
    running.project = tmp_path
    running.stages.clear()
    return running


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Driver]:
    """A tracer that one test may break."""
    driver = Driver(tmp_path)
    yield driver
    if driver.process.poll() is None:
        os.killpg(driver.process.pid, signal.SIGKILL)
    driver.close()


@pytest.fixture
def confined(tmp_path: Path) -> Iterator[Driver]:
    """A tracer that the system confines."""
    driver = Driver(tmp_path, python=start.confined([sys.executable]))
    yield driver
    driver.close()
