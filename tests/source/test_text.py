"""Positions in text: lines as Python has them, columns in code points and in bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.source.text import (
    Edit,
    Position,
    Range,
    code_point_column,
    lines_of,
    normalized,
)


def byte_column(line: str, column: int) -> int:
    """Return the UTF-8 byte column of a code point column; both may be past the line's end."""
    return len(line[:column].encode("utf-8", "surrogatepass")) + max(0, column - len(line))


def test_lines_end_where_python_ends_them() -> None:
    assert lines_of("a\nb\r\nc\rd\n\re\n") == ["a", "b", "c", "d", "", "e", ""]
    assert lines_of("a\fb\u2028c\x85d\x0be") == ["a\fb\u2028c\x85d\x0be"]


def test_a_byte_order_mark_keeps_its_column() -> None:
    assert normalized("\ufeffx = 1") == "\fx = 1"
    assert normalized("x = '\ufeff'") == "x = '\ufeff'"


@pytest.mark.parametrize(
    ("line", "column", "byte"),
    [
        ("abc", 2, 2),
        ("é = 1", 1, 2),
        ("'𝒳' + y", 6, 9),
        ("\té", 2, 3),
        ("é", 3, 4),
        ("\ud800x", 1, 3),
    ],
)
def test_columns_in_bytes(line: str, column: int, byte: int) -> None:
    assert byte_column(line, column) == byte
    assert code_point_column(line, byte) == column


@given(st.text(max_size=20), st.integers(0, 25))
def test_columns_come_back_from_bytes(line: str, column: int) -> None:
    assert code_point_column(line, byte_column(line, column)) == column


def test_a_byte_inside_a_character_gives_the_character() -> None:
    assert [code_point_column("a𝒳b", byte) for byte in range(7)] == [0, 1, 1, 1, 1, 2, 3]


def test_ranges_move_and_meet() -> None:
    range = Range(Position(1, 2), Position(1, 5))
    assert range.shifted(3) == Range(Position(4, 2), Position(4, 5))
    assert Edit(range, "x").shifted(1) == Edit(range.shifted(1), "x")
    assert Position(4, 2).up(3).down(1) == Position(2, 2)
    assert Position(1, 5) in range
    assert Position(1, 6) not in range
    assert range.touches(Range(Position(1, 5), Position(2, 0)))
    assert not range.touches(Range(Position(1, 6), Position(2, 0)))
