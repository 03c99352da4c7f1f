"""What the documentation shows is true: its good lines have no problems, its bad lines those that
it names.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from jaxsight.examples import choice
from jaxsight.rules import RULES, file_of
from jaxsight.source import definitions
from jaxsight.source.definitions import Function
from tests.examples.fixtures import function

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "example-inputs.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
SIZES = {"B": 32, "D": 16}


def blocks(page: str, language: str) -> list[str]:
    return [dedent(m["code"]) for m in BLOCK.finditer(page) if m["language"] == language]


def functions_of(code: str) -> tuple[Function, ...]:
    # Bodies that are docstrings alone are whole functions already.
    return definitions.functions_in(ast.parse(code), code)


@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_the_page_names_exactly_the_problems_of_its_examples(code: str) -> None:
    named = {
        (number, match[1])
        for number, line in enumerate(code.splitlines())
        if (match := re.search(r"# (JX\d+)", line))
    }
    sizes = {} if named else SIZES
    problems = {
        (problem.range.start.line, problem.code)
        for f in functions_of(code)
        for problem in choice.of(f, sizes=sizes).problems
    }
    assert problems == named


@pytest.mark.parametrize("code", [b for b in blocks(PAGE, "python") if "# JX" not in b])
def test_every_function_of_the_page_can_be_traced(code: str) -> None:
    for f in functions_of(code):
        assert choice.of(f, sizes=SIZES).sets, f.qualname


def test_the_project_examples_of_the_page_are_read() -> None:
    (table,) = [b for b in blocks(PAGE, "toml") if "examples" in b]
    entries = tomllib.loads(table)["tool"]["jaxsight"]["examples"]
    gelu = choice.of(function("def gelu(x): ..."), sizes={}, project=entries["mylib.nn:gelu"])
    dense = choice.of(function("def dense(x, w): ..."), sizes={}, project=entries["mylib.nn:dense"])
    assert (gelu.problems, dense.problems) == ((), ())
    assert (gelu.source, dense.source) == ("project", "project")


@pytest.mark.parametrize("code", ["JX901", "JX902", "JX903", "JX904", "JX906", "JX907", "JX908"])
def test_the_page_of_a_code_shows_a_program_that_has_it_and_one_that_has_not(code: str) -> None:
    page = file_of(RULES[code]).read_text(encoding="utf-8")
    bad, good = blocks(page, "python")[:2]
    found = [p.code for f in functions_of(bad) for p in choice.of(f, sizes={}).problems]
    assert set(found) == {code}
    assert [p for f in functions_of(good) for p in choice.of(f, sizes={}).problems] == []
