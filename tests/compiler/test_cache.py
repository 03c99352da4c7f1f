"""What was compiled is found again, by other processes too, and what is broken is as good as not there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsight.compiler.cache import Cache, digest
from jaxsight.compiler.graph import Graph
from jaxsight.compiler.protocol import Compiled, Memory

SERVER = str(Path(__file__).parents[2] / "server")
WRITER = """\
import sys
from pathlib import Path
sys.path.insert(0, {server!r})
from jaxsight.compiler.cache import Cache, digest
from jaxsight.compiler.graph import Graph
from jaxsight.compiler.protocol import Compiled, Memory
cache = Cache(Path({folder!r}))
for index in range(60):
    name = digest("shared", str(index))
    cache.put(name, Compiled(1, "cpu", "device", Graph(str(index), ()), Memory(0, 0, 0, 0, 0), "x" * 20000, 0.1))
    found = cache.get(name)
    assert found is not None and found.graph.module == str(index)
"""


def compiled(module: str = "jit_f", hlo: str = "HloModule jit_f") -> Compiled:
    return Compiled(1, "cpu", "device", Graph(module, ()), Memory(1, 2, 3, 0, 0), hlo, 0.1)


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_an_entry_is_found_in_the_next_session(tmp_path: Path) -> None:
    Cache(tmp_path).put(digest("a"), compiled())
    assert Cache(tmp_path).get(digest("a")) == compiled()
    assert Cache(tmp_path).get(digest("b")) is None


def test_whatever_decides_makes_another_name() -> None:
    assert len({digest("a", "b"), digest("ab"), digest("b", "a"), digest("a", "b", "")}) == 4


@pytest.mark.parametrize("damage", [b"", b"no zlib", None])
def test_a_broken_entry_is_dropped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes | None
) -> None:
    cache = Cache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    path.write_bytes(path.read_bytes()[:-7] if damage is None else damage)
    with caplog.at_level(logging.WARNING):
        assert cache.get(digest("a")) is None
    assert "dropping the broken entry" in caplog.text
    assert not entries(tmp_path)


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for index in range(4):
        cache.put(digest(str(index)), compiled(hlo=os.urandom(20_000).hex()))
    paths = entries(tmp_path)
    for age, index in enumerate((2, 0, 3, 1)):  # 2 was used last
        (path,) = (each for each in paths if each.stem == digest(str(index)))
        os.utime(path, (1e9 - age, 1e9 - age))
    cache.limit = 2 * paths[0].stat().st_size + 1000
    cache.sweep()
    assert {path.stem for path in entries(tmp_path)} == {digest("2"), digest("0")}


def test_a_limit_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    Cache(tmp_path, 0).put(digest("a"), compiled())
    assert not entries(tmp_path)


def test_a_folder_that_cannot_be_written_costs_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.put(digest("a"), compiled())
    assert "cannot be kept" in caplog.text
    assert cache.get(digest("a")) is None


def test_two_processes_write_the_same_entries_at_once(tmp_path: Path) -> None:
    script = WRITER.format(server=SERVER, folder=str(tmp_path))
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [each.wait(60) for each in running] == [0, 0]
    assert len(entries(tmp_path)) == 60  # and nothing half written beside them
