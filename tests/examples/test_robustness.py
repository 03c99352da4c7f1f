"""Docstrings are prose, and half-typed: nothing in them may raise, and prose is never complained
of.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.examples import choice
from jaxsight.features.completion import complete
from jaxsight.features.proposals.actions import section_edit
from jaxsight.source import definitions
from jaxsight.source.definitions import Docstring, Function, Parameter
from jaxsight.source.text import Position, Range, lines_of

DOCSTRING = """Do it.

    Example inputs:
        q, k: f32[4, B*(D+1)//2]  # comment
        params: {'w': f32[B, D],
            'b': (key<fry>[8], None, (1,), -1+2j, {1,2})}
        mode: 'train'
        *args: (f32[3], 3)
        **kw: {'a': i32[]}
        state = init(B, [x for x in y],
            lambda z: z)
        where B=3, D=2*B
    Example inputs (decode):
        mesh: data=2, model=B explicit
        q: ~f32[2@data]
    Expect (h100): kernels <= 3, temp <= 4.5 MiB
    Example inputs (np)
    -------------------
    q : f8_e4m3fn[D]
    :Example inputs (r): k: i4[3]
    >>> f(q, k)
    """
PIECES = [
    *"()[]{}'\"#:=,~-\t\f\r\\\x00𝒳\u2028",
    "\n",
    "    ",
    "where ",
    "Expect (",
    "Example inputs:",
    "\r\n",
    "key<",
    "@(data,",
    "mesh: data=2 explicit",
    "0x",
    "9" * 25,
    "'''",
    "lambda",
    ">>> f(",
]
START = Position(1, 7)


def a_function(docstring: str) -> Function:
    names = ("self", "q", "k", "params", "mode")
    nowhere = Range(Position(0, 4), Position(0, 5))
    return Function(
        qualname="Model.f",
        kind="method",
        range=Range(Position(0, 0), Position(99, 0)),
        name_range=nowhere,
        body_start=Position(1, 4),
        parameters=(
            *(Parameter(name, "positional", nowhere) for name in names),
            Parameter("args", "var_positional", nowhere),
            Parameter("kw", "var_keyword", nowhere),
        ),
        docstring=Docstring(START, docstring),
        static_names=("mode",),
    )


@st.composite
def half_typed(draw: st.DrawFn) -> str:
    """The docstring with pieces put in, cut out and repeated at random."""
    text = DOCSTRING
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 12))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[at + length :]
    return text


@settings(max_examples=300, deadline=None)
@given(half_typed(), st.data())
def test_half_typed_sections_never_raise_and_problems_stand_in_them(
    text: str, data: st.DataObject
) -> None:
    f = a_function(text)
    lines = lines_of(text)
    for problem in choice.of(f, sizes={"S": 3}).problems:
        for position in (problem.range.start, problem.range.end):
            line = position.line - START.line
            first = START.column if line == 0 else 0
            assert first <= position.column <= first + len(lines[line])
        assert problem.range.start <= problem.range.end
    line = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[line]))) + (START.column if line == 0 else 0)
    for proposal in complete(f, Position(START.line + line, column), {"S": 3}):
        edit = proposal.edit.range
        assert edit.start.line == edit.end.line == START.line + line
        assert edit.start.column <= column <= edit.end.column
    section_edit(f, ["x: f32[8]"])


@pytest.mark.parametrize("library", ["optax", "equinox", "diffrax", "flax"])
def test_docstrings_of_libraries_are_not_complained_of(library: str) -> None:
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{library} is not installed")
    read = 0
    for path in Path(spec.submodule_search_locations[0]).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for f in definitions.functions_in(ast.parse(text), text):
            assert choice.of(f, sizes={}).problems == ()
            read += 1
    assert read > 100
