"""What was compiled is found again, by other processes too, and what is broken is as good as not
there.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.queries.programs.disk_cache import DiskCache, digest
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled, Memory

SERVER = str(Path(__file__).parents[2] / "server")
WRITER = """\
import sys
from pathlib import Path
sys.path.insert(0, {server!r})
from jaxsight.queries.programs.disk_cache import DiskCache, digest
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compiled, Memory
cache = DiskCache(Path({folder!r}))
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
    DiskCache(tmp_path).put(digest("a"), compiled())
    assert DiskCache(tmp_path).get(digest("a")) == compiled()
    assert DiskCache(tmp_path).get(digest("b")) is None


def test_whatever_decides_makes_another_name() -> None:
    assert len({digest("a", "b"), digest("ab"), digest("b", "a"), digest("a", "b", "")}) == 4


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGES = {
    "empty": lambda data: b"",
    "something else": lambda data: b"no entry",
    "cut off": lambda data: data[:-7],
    "longer": lambda data: data + b"more",
    "the kind": lambda data: flipped(data, 10),
    "the digest": lambda data: flipped(data, data.index(b"\n") + 5),
    "the content": lambda data: flipped(data, -1),
    "another version": lambda data: data.replace(b"program ", b"program 0", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_entry_is_ignored_with_a_line_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert cache.get(digest("a")) is None
    assert [record.message.startswith(f"{path} is ignored: ") for record in caplog.records] == [
        True
    ]
    cache.put(digest("a"), compiled())
    assert cache.get(digest("a")) == compiled()


def test_no_single_flipped_bit_is_believed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        path.write_bytes(flipped(whole, at))
        assert cache.get(digest("a")) is None, at
    path.write_bytes(whole)
    assert cache.get(digest("a")) == compiled()


def test_an_entry_under_the_name_of_another_is_not_believed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled("a"))
    (path,) = entries(tmp_path)
    other = tmp_path / path.parent.parent.name / digest("b")[:2] / f"{digest('b')}.compiled"
    other.parent.mkdir(mode=0o700, exist_ok=True)
    path.rename(other)
    assert cache.get(digest("b")) is None


PLANTED: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "link to a right one": lambda path: path.symlink_to(path.rename(path.with_name("right"))),
    "3 GiB": lambda path: path.touch() or os.truncate(path, 3 * 2**30),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_no_file_is_ignored_with_a_line_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, planted: str
) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    if planted != "link to a right one":
        path.unlink()
    PLANTED[planted](path)
    with caplog.at_level(logging.WARNING):
        assert cache.get(digest("a")) is None
    assert [record.message.startswith(f"{path} is ignored: ") for record in caplog.records] == [
        True
    ]
    cache.put(digest("a"), compiled())
    assert cache.get(digest("a")) == compiled()
    assert not path.is_symlink()


def test_entries_are_the_users_alone(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    before = os.umask(0)
    try:
        cache.put(digest("a"), compiled())
    finally:
        os.umask(before)
    (path,) = entries(tmp_path)
    folders = [path.parent, path.parent.parent, tmp_path / "cache"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, *folders)] == [0o600, *[0o700] * 3]


def test_an_entry_in_a_folder_that_others_can_write_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path / "cache")
    for name in "ab":
        cache.put(digest(name), compiled())
    (tmp_path / "cache").chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert cache.get(digest("a")) is None
        assert cache.get(digest("a")) is None
    assert "can be written by others (mode 0777)" in caplog.text
    assert len(caplog.records) == 1
    cache.put(digest("c"), compiled())
    assert len(entries(tmp_path)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("part", ["file", "folder"])
def test_an_entry_of_another_user_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    os.chown(path if part == "file" else path.parent, 65534, 65534)
    assert cache.get(digest("a")) is None
    assert "belongs to the user 65534" in caplog.text


def test_a_full_disk_costs_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        cache.put(digest("b"), compiled(hlo=os.urandom(20_000).hex()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert ": File too large" in caplog.text
    assert cache.get(digest("b")) is None
    assert len(entries(tmp_path)) == 1  # and nothing unfinished beside it


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(digest("a"), compiled())
    (path,) = entries(tmp_path)
    left = path.with_name(".unfinished-0123456789abcdef")
    left.touch()
    cache.sweep()
    assert left.exists()  # somebody may be writing it
    os.utime(left, (1e9, 1e9))
    cache.sweep()
    assert entries(tmp_path) == [path]


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
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
    DiskCache(tmp_path, 0).put(digest("a"), compiled())
    assert not entries(tmp_path)


def test_a_folder_that_cannot_be_written_costs_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file")
    cache.put(digest("a"), compiled())
    assert "cannot store " in caplog.text
    assert cache.get(digest("a")) is None


def test_two_processes_write_the_same_entries_at_once(tmp_path: Path) -> None:
    script = WRITER.format(server=SERVER, folder=str(tmp_path))
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [each.wait(60) for each in running] == [0, 0]
    assert len(entries(tmp_path)) == 60  # and nothing half written beside them
