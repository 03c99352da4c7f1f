"""One measurement at a time, and what else a machine does."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from jaxsight.measuring import machine


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_second_measurement_waits_and_says_so() -> None:
    waits, entered = threading.Event(), threading.Event()
    waited: list[float] = []

    def second() -> None:
        with machine.alone(waits.set) as seconds:
            waited.append(seconds)
            entered.set()

    with machine.alone(lambda: None) as seconds:
        assert seconds == 0
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(10)
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()
    assert waited[0] > 0


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are those of POSIX")
def test_a_link_in_the_folder_of_locks_is_not_followed(tmp_path: Path) -> None:
    with machine.alone(lambda: None):
        pass
    [lock] = tmp_path.iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with machine.alone(lambda: None):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")
def test_what_this_process_does_is_not_others() -> None:
    around = machine.OtherWork.now()
    sum(range(3_000_000))
    assert 0 <= around.others() <= (os.cpu_count() or 1)
    assert around.load >= 0


def test_the_clock_has_a_resolution() -> None:
    assert 0 < machine.clock_seconds() < 1e-3
    assert machine.cores() >= 1
