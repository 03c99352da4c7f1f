"""User code's output on its way to people."""

from __future__ import annotations

import pytest

from jaxsight.workers.output import OutputMeter, real_places

CHUNK = "0123456789abcdef"


def locate(path: str, chunk: str) -> int | None:
    return 41 if (path, chunk) == ("/p/a.py", CHUNK) else None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f'File "/p/a.py§{CHUNK}", line 2, in f', 'File "/p/a.py", line 42, in f'),
        (f"/p/a.py§{CHUNK}:1: UserWarning: no", "/p/a.py:41: UserWarning: no"),
        (f'File "/p/a.py§{CHUNK}+40", line 42, in f', 'File "/p/a.py", line 42, in f'),
        (f"at /p/a.py§{CHUNK}+40", "at /p/a.py"),
        (f'File "/p/gone.py§{CHUNK}", line 2', 'File "/p/gone.py", line ?'),
        (f"at /p/a.py§{CHUNK}", "at /p/a.py"),
        ("§ 12 of the law, line 3", "§ 12 of the law, line 3"),
    ],
)
def test_places_are_those_of_the_real_file(text: str, shown: str) -> None:
    assert real_places(text, locate) == shown


def test_a_place_that_comes_in_two_pieces_is_found() -> None:
    meter = OutputMeter(1000, locate)
    line = f'File "/p/a.py§{CHUNK}", line 2\n'.encode()
    assert [meter.feed(line[:10]), meter.feed(line[10:])] == ["", 'File "/p/a.py", line 42\n']


def test_a_character_that_comes_in_two_pieces_is_whole() -> None:
    meter = OutputMeter(1000, locate)
    data = "née\n".encode()
    assert meter.feed(data[:2]) + meter.feed(data[2:]) == "née\n"


def test_what_is_no_text_is_shown_as_such() -> None:
    assert OutputMeter(1000, locate).feed(b"\xff\n") == "\ufffd\n"


def test_an_unfinished_line_comes_at_the_end() -> None:
    meter = OutputMeter(1000, locate)
    assert meter.feed(b"a\nb") == "a\n"
    assert meter.finish() == "b"
    assert meter.finish() == ""


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    meter = OutputMeter(1_000_000, locate)
    assert meter.feed(b"." * 100_000) == "." * 100_000


def test_the_limit_is_told_once_and_holds_for_one_request() -> None:
    meter = OutputMeter(5, locate)
    assert meter.feed(b"0123456789\n") == "01234\n… output truncated after 5 bytes\n"
    assert meter.feed(b"more\n") == ""
    assert meter.finish() == ""
    assert meter.feed(b"new\n") == "new\n"


def test_the_last_words_are_known_beyond_the_limit() -> None:
    meter = OutputMeter(5, locate)
    for _ in range(10_000):
        meter.feed(b"a line of no interest\n")
    meter.feed(f'Fatal: File "/p/a.py§{CHUNK}", line 1\n'.encode())
    assert meter.last_words.endswith('Fatal: File "/p/a.py", line 41')
    assert len(meter.last_words) < 5000
