"""A version identifies the text that an import would get, in the editor or on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jaxsight.files.texts import MISSING, Texts, stamp_of, version_of_text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lib.py"
    path.write_text("x = 1\n")
    return path


@pytest.mark.parametrize(
    "text", ["x = 1\ny = 2\n", "x = 1\r\ny = 2\r\n", "x = 1\ry = 2\r", "\ufeffx = 1\ny = 2\n"]
)
def test_line_ends_and_a_byte_order_mark_do_not_matter(text: str, file: Path) -> None:
    texts = Texts()
    same = version_of_text("x = 1\ny = 2\n")
    texts.put(str(file), text)
    assert texts.version(str(file)) == same
    texts.put(str(file), None)
    file.write_bytes(text.encode())
    assert texts.version(str(file)) == same


def test_the_editor_s_text_wins_until_the_file_is_closed(file: Path) -> None:
    texts = Texts()
    on_disk = texts.version(str(file))
    texts.put(str(file), "x = 2\n")
    assert texts.current(str(file)) == "x = 2\n"
    assert texts.differs_from_disk(str(file))
    assert not texts.is_current(str(file), on_disk)
    texts.put(str(file), "x = 1\n")
    assert not texts.differs_from_disk(str(file))
    assert texts.is_current(str(file), on_disk)
    texts.put(str(file), None)
    assert texts.is_current(str(file), on_disk)


def test_what_was_open_is_not_changed_by_later_edits(file: Path) -> None:
    texts = Texts()
    texts.put(str(file), "x = 2\n")
    before = texts.open
    texts.put(str(file), "x = 3\n")
    texts.put(str(file.with_name("other.py")), "")
    assert before == {str(file): "x = 2\n"}


def test_two_changes_within_a_tick_of_the_clock_of_files_are_two(file: Path) -> None:
    texts = Texts()
    first = texts.version(str(file))
    status = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert stamp_of(str(file)).split()[1] == str(status.st_mtime_ns)
    assert texts.version(str(file)) != first


def test_a_link_and_its_file_are_one_file(file: Path) -> None:
    link = file.with_name("link.py")
    link.symlink_to(file)
    texts = Texts()
    texts.put(str(link), "x = 2\n")
    texts.put(str(file), "x = 3\n")
    assert texts.current(str(link)) == "x = 3\n"
    texts.put(str(file), None)
    assert texts.current(str(file)) == "x = 2\n"
    texts.put(str(link), None)
    assert texts.current(str(file)) == "x = 1\n"


@pytest.mark.parametrize("arrives", ["a text", "a folder", "an open file"])
def test_what_was_missing_is_noticed_when_it_is_there(arrives: str, tmp_path: Path) -> None:
    path, texts = tmp_path / "late", Texts()
    assert texts.version(str(path)) == MISSING
    assert texts.is_current(str(path), MISSING)
    match arrives:
        case "a text":
            path.write_text("")
        case "a folder":
            path.mkdir()
        case _:
            texts.put(str(path), "")
    assert not texts.is_current(str(path), MISSING)


def test_data_are_recognized_without_reading_them(file: Path) -> None:
    texts, stamp = Texts(), stamp_of(str(file))
    assert texts.are_current({str(file): stamp})
    os.utime(file, ns=(1, 1))
    assert not texts.are_current({str(file): stamp})
    file.unlink()
    assert not texts.are_current({str(file): stamp})


def test_what_cannot_be_read_or_decoded_has_a_version(tmp_path: Path) -> None:
    texts = Texts()
    wrong = tmp_path / "wrong.py"
    wrong.write_bytes(b"# coding: utf-8\n\xff\n")
    version = texts.version(str(wrong))
    assert version != MISSING
    wrong.write_bytes(b"# coding: utf-8\n\xfe\n")
    assert texts.version(str(wrong)) != version
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    assert texts.version(str(pipe)) == MISSING
    assert texts.current(str(pipe)) == ""
