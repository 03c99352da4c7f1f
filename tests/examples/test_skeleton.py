"""The section that the action adds: in the docstring's style, from signature and annotations,
without problems.
"""

from __future__ import annotations

import ast

import pytest
from inline_snapshot import snapshot

from jaxsight import examples
from jaxsight.features.example_skeleton import skeleton
from tests.examples.fixtures import edited, function


def with_section(source: str, name: str | None = None) -> str:
    """The source with a section added to the function; its examples must have no problems."""
    text = edited(source, skeleton(function(source, name)))
    ast.parse(text)
    found = examples.of(function(text, name), sizes={})
    assert (found.source, found.problems, len(found.sets)) == ("docstring", (), 1)
    return text


def test_a_docstring_is_made_where_there_is_none() -> None:
    assert with_section("def f(q, k, causal=True):\n    return q\n") == snapshot('''\
def f(q, k, causal=True):
    """
    Example inputs:
        q, k: f32[8, 8]
    """
    return q
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


def test_annotations_and_names_say_what_an_argument_is() -> None:
    source = '''\
def f(params, x: Float[Array, "b d"], key, n: int, g: Callable[[int], int], mode: Literal["a", "b"]):
    """Do it."""
'''
    assert with_section(source) == snapshot('''\
def f(params, x: Float[Array, "b d"], key, n: int, g: Callable[[int], int], mode: Literal["a", "b"]):
    """Do it.

    Example inputs:
        params: {'w': f32[8, 8], 'b': f32[8]}
        x: f32[b, d]
        key: key<fry>[]
        n: 1
        g = lambda x: x
        mode: 'a'
        where b=8, d=16
    """
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


def test_a_method_gets_self_unless_its_class_gives_it() -> None:
    source = '''\
class Model:
    """A model."""

    def __call__(
        self, x
    ):
        return x
'''
    assert "            self = Model()\n" in with_section(source, "Model.__call__")
    given = source.replace("A model.", "Example inputs: self = Model()")
    assert "self" not in with_section(given, "Model.__call__").partition('"""\n        Ex')[2][:60]


def test_static_arguments_get_literals() -> None:
    source = '@partial(jax.jit, static_argnames="n")\ndef f(x, n):\n    return x\n'
    assert "        n: 1\n" in with_section(source)


@pytest.mark.parametrize("annotation", ["", ": Mesh", ": jax.sharding.Mesh"])
def test_a_parameter_called_mesh_is_one(annotation: str) -> None:
    written = with_section(f"def f(x, mesh{annotation}):\n    return x\n")
    assert "        x: f32[8, 8]\n        mesh: data=2\n" in written
    assert "        mesh: 1\n" in with_section("def f(x, mesh: int):\n    return x\n")
