"""A folder may hold anything: a check goes on, and what was there is never lost."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import write_file
from jaxsight.cli.sources.arguments import python_files, read_source
from tests.terminal import jaxsight


def test_files_of_a_folder_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "latin.py").write_bytes(b"# \xe4\n")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    (tmp_path / "again").symlink_to(tmp_path)
    done = jaxsight("check", ".", "--output-format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    found = [(Path(one["filename"]).name, one["code"]) for one in json.loads(done.stdout)]
    assert found == [(name, "unreadable-file") for name in ("device.py", "latin.py", "pipe.py")]


def test_a_file_that_was_named_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (path,) = python_files([tmp_path / "pipe.py"])
    with pytest.raises(CommandError, match="it is a named pipe, expected a file"):
        read_source(path)


def test_links_among_folders_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / os.fsdecode(b"\xe4.py")).touch()
    assert list(python_files([tmp_path])) == [tmp_path / "a.py", tmp_path / os.fsdecode(b"\xe4.py")]


def test_a_full_disk_loses_no_text(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("x = 1\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(CommandError, match=r"cannot write .*model\.py: File too large"):
            write_file(path, b"y" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "x = 1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "real.py").touch(mode=0o640)
    (tmp_path / "link.py").symlink_to("real.py")
    write_file(tmp_path / "link.py", b"new")
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"
    assert (tmp_path / "real.py").stat().st_mode & 0o777 == 0o640
    write_file(Path("/dev/null"), b"anything")
    assert Path("/dev/null").is_char_device()
