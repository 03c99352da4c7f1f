"""Whatever stands under a name, reading it gives its content or one clear error, and never
waits.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.files import reading


def problem(path: Path | str, limit: int = reading.SMALL) -> str:
    """Why a file cannot be read."""
    with pytest.raises(reading.UnreadableError) as raised:
        reading.data(path, limit)
    assert str(raised.value) == f"cannot read {path}: {raised.value.reason}"
    return raised.value.reason


def linked(path: Path, target: str | Path) -> Path:
    path.symlink_to(target)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


NULL = (
    "embedded null byte" if sys.version_info < (3, 14) else "stat: embedded null character in path"
)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (pipe, "it is a named pipe, expected a file"),
        (lambda path: linked(path, pipe(path.with_name("pipe"))), "it is a named pipe, expected a file"),
        (folder, "it is a folder, expected a file"),
        (lambda path: linked(path, "/dev/zero"), "it is a device, expected a file"),
        (lambda path: linked(path, "/dev/tty"), "it is a device, expected a file"),
        (lambda path: linked(path, path), "Too many levels of symbolic links"),
        (lambda path: path.with_name("null\0byte"), NULL),
        (lambda path: path.with_name("long" * 100), "File name too long"),
        (lambda path: Path("/proc/self/mem"), "Input/output error"),
    ],
    ids=["pipe", "link to a pipe", "folder", "endless device", "terminal", "loop", "null", "long", "memory"],
)  # fmt: skip
def test_what_is_no_file_is_named(
    tmp_path: Path, made: Callable[[Path], Path], reason: str
) -> None:
    assert problem(made(tmp_path / "pyproject.toml")) == reason


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside.txt",
        "data/../../outside.txt",
        "/dev/zero",
        "link",
        "data/link/outside.txt",
        "C:\\outside.txt",
        "..\\outside.txt",
        "null\0byte",
    ],
)
def test_a_name_in_a_file_leads_to_nothing_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    within = folder(tmp_path / "folder")
    folder(within / "data")
    (tmp_path / "outside.txt").write_text("")
    linked(within / "link", tmp_path / "outside.txt")
    linked(within / "data" / "link", tmp_path)
    with pytest.raises(reading.UnreadableError):
        reading.inside(within, name)


def test_a_name_in_a_file_leads_to_files_inside_of_the_folder(tmp_path: Path) -> None:
    within = linked(tmp_path / "opened", folder(tmp_path / "folder"))
    linked(folder(within / "data") / "link", within / "manifest.json")
    real = tmp_path / "folder"
    assert reading.inside(within, "data/rows.jsonl") == real / "data" / "rows.jsonl"
    assert reading.inside(within, "data/link") == real / "manifest.json"
    (real / "manifest.json").write_text("{}")
    with reading.opened(within / "manifest.json") as file:
        assert file.read() == b"{}"


@pytest.mark.parametrize("make", [pipe, folder, lambda path: linked(path, "/dev/zero")])
def test_what_is_no_file_is_not_opened(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(reading.UnreadableError), reading.opened(make(tmp_path / "rows.jsonl")):
        pass


def test_a_socket_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # their names are short
    assert problem(listening(Path("socket"))) == "it is a socket, expected a file"


def test_standard_input_is_named(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        link = linked(tmp_path / "link", f"/proc/self/fd/{reader}")
        assert problem(link) == "it is a named pipe, expected a file"
    finally:
        os.close(reader)
        os.close(writer)


def test_nobody_who_writes_to_a_pipe_is_let_go(tmp_path: Path) -> None:
    path = pipe(tmp_path / "pipe")
    writer = "import os, sys; os.open(sys.argv[1], os.O_WRONLY)"  # waits for a reader
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", writer, str(path)])
    try:
        assert problem(path) == "it is a named pipe, expected a file"
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_what_is_not_there_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file" / "below"):
        with pytest.raises(reading.MissingError):
            reading.data(path)


AS_NOBODY = """
import os
from jaxsight.files import reading

os.setuid(65534)
inside = "closed/file"
try:
    reading.data("file")
except reading.UnreadableError as error:
    seen = reading.exists(inside), reading.is_file(inside), reading.is_folder(inside)
    print(error.reason, *seen, reading.below("closed", "*"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed to forbid")
def test_what_is_forbidden_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o600)
    (tmp_path / "closed").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Permission denied False False False []\n", done.stderr


def test_gigantic_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(3 * 2**30)
    assert problem(path, reading.SETTINGS) == "it is larger than 256 KiB"
    assert problem(path, reading.SOURCE) == "it is larger than 64 MiB"


def test_the_limit_holds_where_the_told_size_is_wrong() -> None:
    assert Path("/proc/self/status").stat().st_size == 0
    assert problem("/proc/self/status", 16) == "it is larger than 16 B"
    assert reading.data("/proc/self/status").startswith(b"Name:")


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1024)
    assert reading.data(path, 1024) == b"x" * 1024
    assert problem(path, 1023) == "it is larger than 1023 B"


def test_text_is_utf_8_and_loses_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa = '\xc3\xa4'\n")
    assert reading.text(path) == "a = 'ä'\n"
    path.write_bytes("first\nsecond ä".encode("latin-1"))
    with pytest.raises(reading.UnreadableError, match=r"line 2 is not UTF-8 \(byte 0xe4\)$"):
        reading.text(path)
    assert reading.text(path, strict=False) == "first\nsecond �"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\r\nb\r", "a\r\nb\r"),
        (b"# coding: latin-1\n\xe4", "# coding: latin-1\nä"),
        (b"\xef\xbb\xbfa", "a"),
    ],
)
def test_source_is_decoded_as_python_does(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(content)
    assert reading.source(path) == text


@pytest.mark.parametrize(
    "content",
    [b"\xe4", "utf-16".encode("utf-16"), b"# coding: klingon\n", b"# coding: rot13\n", b"# coding: hex\n",
     b"\xef\xbb\xbf# coding: latin-1\n", b"# coding: undefined\nx"],
)  # fmt: skip
def test_source_in_no_encoding_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(content)
    with pytest.raises(reading.UnreadableError):
        reading.source(path)
