"""The section that the action adds: in the docstring's style, without problems."""

from __future__ import annotations

import ast

import pytest
from inline_snapshot import snapshot

from jaxsight.examples import choice
from jaxsight.features.proposals.actions import section_edit
from tests.examples.fixtures import edited, function

LINES = ("x: f32[8, 8]",)


def with_section(source: str, lines: tuple[str, ...] = LINES) -> str:
    """The source with a section added to the function; its examples must have no problems."""
    text = edited(source, section_edit(function(source), lines))
    ast.parse(text)
    found = choice.of(function(text), sizes={})
    assert (found.source, found.problems, len(found.sets)) == ("docstring", (), 1)
    return text


def test_a_docstring_is_made_where_there_is_none() -> None:
    assert with_section("def f(x, causal=True):\n    return x\n") == snapshot('''\
def f(x, causal=True):
    """
    Example inputs:
        x: f32[8, 8]
    """
    return x
''')


def test_a_function_on_one_line_is_opened() -> None:
    assert with_section("def f(x): return x\n") == snapshot('''\
def f(x): 
    """
    Example inputs:
        x: f32[8, 8]
    """
    return x
''')


@pytest.mark.parametrize(
    ("docstring", "section"),
    [
        (
            "Do it.\n\n    Parameters\n    ----------\n    x : array\n    ",
            "    Example inputs\n    --------------\n    x: f32[8, 8]\n",
        ),
        ("Do it.\n\n    :param x: array\n    ", "    :Example inputs:\n        x: f32[8, 8]\n"),
        ("Do it.\n\n    Args:\n        x: array", "    Example inputs:\n        x: f32[8, 8]\n"),
    ],
)
def test_the_section_is_in_the_docstrings_style(docstring: str, section: str) -> None:
    source = f'def f(x):\n    """{docstring}"""\n'
    assert with_section(source) == f'def f(x):\n    """{docstring.rstrip()}\n\n{section}    """\n'


@pytest.mark.parametrize("quoted", ["'Do \"it\".'", '"Do it."', "r'Do \\it.'"])
def test_quotes_that_hold_one_line_become_triple(quoted: str) -> None:
    text = with_section(f"def f(x):\n    {quoted}\n    return x\n")
    before = ast.literal_eval(quoted)
    after = ast.get_docstring(ast.parse(text).body[0])  # type: ignore[arg-type]
    assert after is not None
    assert after.startswith(before + "\n\nExample inputs:")
