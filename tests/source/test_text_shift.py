"""Positions through an edit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.source.text import Position, Range, lines_of
from jaxsight.source.text_shift import TextShift, common_prefix, common_suffix
from tests.source.texts import edits, heaps


def line(text: str, number: int) -> str:
    return lines_of(text)[number]


OLD = "a = 1\nb = foo(2)\nc = 3\nd = 4\n"


@pytest.mark.parametrize(
    ("new", "old_place", "new_place"),
    [
        (OLD, (2, 4), (2, 4)),
        ("\n\n" + OLD, (0, 0), (2, 0)),
        (OLD.replace("b = foo(2)\n", ""), (2, 4), (1, 4)),
        (OLD.replace("b = foo(2)\n", ""), (1, 4), None),
        (OLD.replace("foo(2)", "foo(x, 2)"), (1, 4), (1, 4)),
        (OLD.replace("foo(2)", "foo(x, 2)"), (1, 10), (1, 13)),
        (OLD.replace("foo(2)", "bar(2)"), (1, 5), None),
        (OLD.replace("a = 1", "a = 10").replace("d = 4", "d = 40"), (2, 0), (2, 0)),
        (OLD.replace("a = 1", "a = 10").replace("d = 4", "d = 40"), (3, 4), (3, 4)),
        ("", (1, 0), None),
    ],
)
def test_positions(new: str, old_place: tuple[int, int], new_place: tuple[int, int] | None) -> None:
    expected = Position(*new_place) if new_place is not None else None
    assert TextShift(OLD, new).position(Position(*old_place)) == expected


def test_a_range_that_was_typed_into_is_gone_and_those_around_it_are_not() -> None:
    shift = TextShift(OLD, OLD.replace("foo(2)", "foo(x, 2)"))
    call = Range(Position(1, 4), Position(1, 10))
    callee = Range(Position(1, 4), Position(1, 7))
    last = Range(Position(1, 8), Position(1, 10))
    several = Range(Position(0, 0), Position(3, 5))
    assert shift.range(call) is None
    assert shift.range(callee) == callee
    assert shift.range(last) == Range(Position(1, 11), Position(1, 13))
    assert shift.range(several) == several


def test_a_word_that_was_typed_on_is_another_word() -> None:
    shift = TextShift("y = x + 1\n", "y = xs + 1\n")
    assert shift.range(Range(Position(0, 4), Position(0, 5))) is None
    assert shift.range(Range(Position(0, 0), Position(0, 1))) is not None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_a_kept_range_covers_stands_there_still(data: st.DataObject) -> None:
    old = data.draw(heaps())
    new = data.draw(edits(old))
    shift = TextShift(old, new)
    for number, text in enumerate(lines_of(old)):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        found = shift.range(Range(Position(number, start), Position(number, end)))
        if found is not None:
            assert (
                line(new, found.start.line)[found.start.column : found.end.column]
                == text[start:end]
            )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_lines_outside_of_the_edit_keep_their_positions(data: st.DataObject) -> None:
    above = "".join(f"above {i}\n" for i in range(data.draw(st.integers(0, 5))))
    below = "".join(f"below {i}\n" for i in range(data.draw(st.integers(0, 5))))
    old = data.draw(heaps()) + "\n"
    new = data.draw(edits(old)) + "\n"
    shift = TextShift(above + old + below, above + new + below)
    now = lines_of(above + new + below)
    for number, text in enumerate(lines_of(above + old + below)):
        if text.startswith(("above", "below")):
            place = Position(number, 3)
            assert shift.position(place) == Position(now.index(text), 3)


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_common_ends(one: str, other: str) -> None:
    prefix = common_prefix(one, other)
    assert one[:prefix] == other[:prefix]
    assert one[: prefix + 1] != other[: prefix + 1] or prefix == min(len(one), len(other))
    limit = min(len(one), len(other)) - prefix
    suffix = common_suffix(one, other, limit=limit)
    assert one[len(one) - suffix :] == other[len(other) - suffix :]
    assert suffix == limit or one[-suffix - 1] != other[-suffix - 1]
