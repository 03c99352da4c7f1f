"""What is proposed at the cursor (`$0`) inside a section, and that nothing is outside of one."""

from __future__ import annotations

import pytest

from jaxsight.features.completion import complete
from tests.examples.fixtures import at_cursor, edited


def completions(source: str, name: str | None = None) -> dict[str, str]:
    """Labels with the text of the line after accepting each; sizes `S` are set."""
    f, position = at_cursor(source, name)
    text = source.replace("$0", "")
    line = position.line
    return {
        proposal.label: edited(text, proposal.edit).split("\n")[line]
        for proposal in complete(f, position, {"S": 3})
    }


def section(line: str) -> str:
    return f'''
def f(q, k: Array, n=3, *rest):
    """Do it.

    Example inputs:
        q: f32[B, D]
        where D=4
{line}

    Returns:
        y
    """
'''


@pytest.mark.parametrize("line", ["        $0", "        k$0", "        $0k"])
def test_a_fresh_line_is_offered_the_arguments_that_have_no_example(line: str) -> None:
    found = completions(section(line))
    assert found["k"] == "        k: "
    assert found["*rest"] == "        *rest: "
    assert found["mesh"] == "        mesh: "
    assert list(found) == ["k", "n", "*rest", "mesh", "where", "Expect"]


def test_after_a_comma_only_arguments_are_offered() -> None:
    assert list(completions(section("        k, $0"))) == ["n", "*rest"]


def test_a_name_before_a_colon_is_replaced_alone() -> None:
    assert completions(section("        n$0: 3"))["k"] == "        k: 3"


@pytest.mark.parametrize(
    "line", ["        k: $0", "        k: f$0", "        k: {'a': $0", "        k: (f32[3], $0"]
)
def test_dtypes_are_offered_where_a_value_begins(line: str) -> None:
    found = completions(section(line))
    assert {"f32", "bf16", "bool", "f8_e4m3fn", "key<fry>"} <= set(found)
    assert found["f32"] == line.partition("$0")[0].removesuffix("f") + "f32"


@pytest.mark.parametrize(
    "line", ["        k: f32[$0", "        k: f32[2, $0]", "        k: f32[2 * $0"]
)
def test_sizes_are_offered_inside_a_shape(line: str) -> None:
    assert set(completions(section(line))) == {"S", "B", "D"}


def test_where_is_offered_the_sizes_that_nothing_defines() -> None:
    assert completions(section("        where $0")) == {"B": "        where B="}


@pytest.mark.parametrize(
    "line",
    [
        "        k: f32[3] $0",
        "        k = $0",
        "        k: {$0",
        "        k: f32[3]  # see $0",
        "        k: f32[8@$0",
        "        k: f32[8@(data,$0",
        "        mesh: $0",
        "        Expect (h100): $0",
        "    $0",
        "    Args$0",
    ],
)
def test_nothing_is_offered_where_nothing_of_ours_can_stand(line: str) -> None:
    assert completions(section(line)) == {}


def test_a_continued_line_knows_what_it_continues() -> None:
    assert "f32" in completions(section("        k: {'a': f32[B],\n            'b': $0"))


@pytest.mark.parametrize(
    ("docstring", "line"),
    [
        ("Do it.\n\n    Ex$0\n    ", "    Example inputs:"),
        ("Do it.\n\n    :param q: it\n    :Exam$0\n    ", "    :Example inputs:"),
        (
            "Do it.\n\n    Parameters\n    ----------\n    q : x\n\n    Exa$0\n    ",
            "    Example inputs",
        ),
    ],
)
def test_a_begun_heading_is_completed_in_the_docstrings_style(docstring: str, line: str) -> None:
    found = completions(f'def f(q):\n    """{docstring}"""\n')
    assert found["Example inputs:"] == line


def test_a_second_heading_gets_a_name() -> None:
    assert "Example inputs (name):" in completions(section("    Ex$0"))


def test_self_is_not_offered_when_the_class_gives_it() -> None:
    source = '''
class Model:
    """A model.

    Example inputs:
        self = Model()
    """

    def __call__(self, x):
        """
        Example inputs:
            $0
        """
'''
    assert "self" not in completions(source, "Model.__call__")
    without = source.replace("self = Model()", "y: 3")
    assert completions(without, "Model.__call__")["self"] == "            self = "


def test_a_parameter_called_mesh_is_offered_as_an_argument() -> None:
    source = '''
def f(x, mesh):
    """
    Example inputs:
        x: f32[8@rows]
        $0
    """
'''
    assert list(completions(source)) == ["mesh", "where", "Expect"]
    assert "f32" in completions(source.replace("$0", "mesh: $0"))
