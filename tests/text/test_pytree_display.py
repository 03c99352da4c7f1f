"""Displays of trees, made to fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.text.pytree_display import folded, has_array, wrapped

ADAM = (
    "(EmptyState(), (ScaleByAdamState(count=i32[], mu={'b': f32[8], 'w': f32[32,8]}, "
    "nu={'b': f32[8], 'w': f32[32,8]}), EmptyState()))"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("f32[4,8,128,128]", "f32[4,8,128,128]"),
        ("f32[1024,1024,1024,1024,1024,32768]", "f32[1024,1024,1024,1024,1024,…"),
        ("Linear(w=Param(f32[1,32]), b=Param(f32[2]))", "Linear(w=f32[1,32], b=f32[2])"),
        ("(f32[20,4,6], f32[20,4,1])", "(f32[20,4,6], f32[20,4,1])"),
        (ADAM, "(EmptyState(), (…))"),
        ("{'a': {'w': f32[3,3,1,8]}, 'b': {'w': f32[3,3,1,8]}}", "{'a': {…}, 'b': {…}}"),
        ("MLP(layers=(Linear(w=f32[8,3]),), activation=relu, depth=2)", "MLP(layers=(Linear(…),))"),
        ("({'w': f32[8@(data,model),3], 'b': f32[3]}, f32[2]{V:(x,y)})", "({…}, f32[2]{V:(x,y)})"),
        ("(f32[8]{V:x, U:y}, {'kernel': f32[8]{V:x}, 'b': f32[1]})", "(f32[8]{V:x, U:y}, {…})"),
        ("[f32[128], f32[128], f32[128], f32[128], f32[128]]", "[f32[128], f32[128], …]"),
        ("{'not a ( bracket': f32[128,128,128], 'b': (f32[1],)}", "{…}"),
        ("one ( that does not close, [as such", "one ( that does not close, [a…"),
    ],
)
def test_a_hint_folds_the_inner_containers_first(text: str, line: str) -> None:
    assert folded(text, 30) == line


def test_a_hover_wraps_a_tree_over_lines() -> None:
    assert wrapped(ADAM, 48, 20).splitlines() == [
        "(",
        "    EmptyState(),",
        "    (",
        "        ScaleByAdamState(",
        "            count=i32[],",
        "            mu={'b': f32[8], 'w': f32[32,8]},",
        "            nu={'b': f32[8], 'w': f32[32,8]},",
        "        ),",
        "        EmptyState(),",
        "    ),",
        ")",
    ]


def test_a_hover_folds_what_takes_too_many_lines() -> None:
    assert wrapped(ADAM, 48, 6).splitlines() == [
        "(",
        "    EmptyState(),",
        "    (ScaleByAdamState(…), EmptyState()),",
        ")",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f32[8]", True),
        ("f32[8@(data,model)]", True),
        ("(key<fry>[], 1)", True),
        ("[1, 2]", False),
        ("['f32', 'a']", False),
    ],
)
def test_what_holds_an_array(text: str, said: bool) -> None:
    assert has_array(text) is said


@given(st.text(alphabet="ab=,'\"([{)]} …<>12f", max_size=60), st.integers(1, 40))
def test_any_text_fits(text: str, width: int) -> None:
    assert len(folded(text, width)) <= max(width, 1)
    assert wrapped(text, width, 3) is not None
