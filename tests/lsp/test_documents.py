"""Texts under edits, and positions in the units of the client."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from jaxsight.lsp.documents.text import ClientDocument, DocumentWindow, Units, split_lines
from jaxsight.source.text import Position, Range

ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNIT_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
TEXTS = st.text(st.sampled_from("ab\n\r\x0c\u2028é😋 "), max_size=30)


def document(text: str) -> ClientDocument:
    return ClientDocument("file:///x.py", "/x.py", 1, text)


def change(
    start: tuple[int, int], end: tuple[int, int], text: str
) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(
        range=types.Range(start=types.Position(*start), end=types.Position(*end)), text=text
    )


def test_lines_end_where_editors_end_them() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\re\n\nf") == [
        "a\x0cb\u2028c\r\n",
        "d\r",
        "e\n",
        "\n",
        "f",
    ]


def test_edit_lands_on_its_line_below_a_line_separator_character() -> None:
    text = document("s = '\u2028'\nword = 1\n")
    text.apply([change((1, 0), (1, 4), "renamed")], 2, Units("utf-16"))
    assert text.text == "s = '\u2028'\nrenamed = 1\n"
    assert text.version == 2


def test_position_beyond_a_line_is_its_end() -> None:
    text = document("ab\r\ncd")
    text.apply([change((0, 99), (0, 99), "!")], 2, Units("utf-16"))
    assert text.text == "ab!\r\ncd"


def test_position_beyond_the_text_is_its_end() -> None:
    text = document("ab")
    text.apply([change((7, 3), (7, 3), "\ncd")], 2, Units("utf-16"))
    assert text.text == "ab\ncd"


def test_two_halves_of_a_line_end_become_one() -> None:
    text = document("a\rb\nc")
    text.apply([change((1, 0), (1, 1), "")], 2, Units("utf-16"))
    assert text.lines == ["a\r\n", "c"]


def test_whole_text_replaces_whatever_was() -> None:
    text = document("a\nb\n")
    text.apply([types.TextDocumentContentChangeWholeDocument(text="c")], 5, Units("utf-16"))
    assert (text.text, text.version, text.last_line) == ("c", 5, 0)


@given(TEXTS, TEXTS, st.data(), st.sampled_from(sorted(ENCODINGS)))
def test_any_edit_does_to_the_lines_what_it_does_to_the_text(
    old: str, new: str, data: st.DataObject, encoding: str
) -> None:
    starts = [0, *(m.end() for m in re.finditer("\r\n|\r|\n", old))]

    def place(offset: int) -> tuple[int, int]:
        line = max(i for i, start in enumerate(starts) if start <= offset)
        before = old[starts[line] : offset]
        return line, len(before.encode(ENCODINGS[encoding])) // UNIT_BYTES[encoding]

    within_line_end = {m.start() + 1 for m in re.finditer("\r\n", old)}
    offsets = [offset for offset in range(len(old) + 1) if offset not in within_line_end]
    first, last = sorted(data.draw(st.lists(st.sampled_from(offsets), min_size=2, max_size=2)))
    text = document(old)
    text.apply([change(place(first), place(last), new)], 2, Units(encoding))
    assert text.text == old[:first] + new + old[last:]
    assert text.lines == split_lines(text.text)


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
@given(line=st.text(st.sampled_from("aé€😋"), max_size=12), data=st.data())
def test_columns_survive_the_way_to_the_client_and_back(
    encoding: str, line: str, data: st.DataObject
) -> None:
    column = data.draw(st.integers(0, len(line)))
    units = Units(encoding)
    there = units.units(line, column)
    assert there == len(line[:column].encode(ENCODINGS[encoding])) // UNIT_BYTES[encoding]
    assert units.column(line, there) == column


def test_column_inside_a_surrogate_pair_is_the_end_of_its_character() -> None:
    assert Units("utf-16").column("😋x", 1) == 1


def test_view_of_a_cell_moves_lines_and_keeps_to_the_cell() -> None:
    view = DocumentWindow(document("a = 1\nbb"), Units("utf-16"), first=10, is_entire=False)
    assert view.position(types.Position(1, 2)) == Position(11, 2)
    assert view.holds(Range(Position(11, 0), Position(12, 0)))
    assert not view.holds(Range(Position(12, 0), Position(12, 1)))
    assert view.to_position(Position(12, 0)) == types.Position(1, 2)
    assert view.to_position(Position(3, 5)) == types.Position(0, 0)
