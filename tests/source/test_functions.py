"""What is known of a function from its text."""

from __future__ import annotations

import pytest

from jaxsight.source.definitions import Function
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range


def functions(text: str) -> dict[str, Function]:
    return {function.qualname: function for _, function in Module.parse(text).functions}


def only(text: str) -> Function:
    (function,) = functions(text).values()
    return function


def cut(text: str, range: Range) -> str:
    return Module.parse(text).slice_text(range)


def test_overloads_are_no_functions_of_their_own() -> None:
    text = """
import typing as t
from typing import overload
class A:
    @overload
    def __call__(self, x, state): ...
    @t.overload
    def __call__(self, x, state, more): ...
    def __call__(self, x): return x
"""
    (call,) = Module.parse(text).functions
    assert [parameter.name for parameter in call[1].parameters] == ["self", "x"]


def test_functions_are_named_as_python_names_them() -> None:
    text = """
def f():
    def inner():
        class Local:
            def m(self): ...
class A:
    def m(self): ...
    class B:
        async def n(self): ...
if a:
    def g(): yield 1
"""
    found = functions(text)
    assert {name: (f.kind, f.refused) for name, f in found.items()} == {
        "f": ("function", ""),
        "f.<locals>.inner": ("function", "nested"),
        "f.<locals>.inner.<locals>.Local.m": ("method", "nested"),
        "A.m": ("method", ""),
        "A.B.n": ("method", "async"),
        "g": ("function", "generator"),
    }


def test_only_a_functions_own_yield_makes_it_a_generator() -> None:
    text = "def f(x):\n    def g():\n        yield x\n    return [lambda: (yield), g]\n"
    assert functions(text)["f"].refused == ""
    assert functions("def f():\n    return [x for x in (yield)]\n")["f"].refused == "generator"


def test_kinds_of_methods() -> None:
    text = """class A:
    @classmethod
    def c(cls): ...
    @staticmethod
    def s(): ...
    @property
    def p(self): ...
    @functools.cached_property
    def q(self): ...
    @p.setter
    def r(self, v): ...
    @jax.jit
    def m(self): ...
    def __new__(cls): ...
"""
    kinds = [function.kind for function in functions(text).values()]
    assert kinds == [
        *("classmethod", "staticmethod", "property", "property", "property"),
        *("method", "staticmethod"),
    ]


def test_ranges_count_from_the_chunk_in_code_points() -> None:
    text = "@a('𝒳')  # é\ndef  ünder(ä: '𝒳' = 'é', *b, c=1): return '𝒳'\n"
    function = only("\n\n" + text)
    assert cut(text, function.range) == text.rstrip("\n")
    assert cut(text, function.name_range) == "ünder"
    assert [cut(text, parameter.range) for parameter in function.parameters] == ["ä", "b", "c"]
    assert function.body_start == Position(1, 35)


def test_parameters_as_written() -> None:
    text = (
        "def f(a, /, b: int = 1 + 2, *args: 'T', c, d: A[\n    0] = (3), **kwargs) -> A | B: ...\n"
    )
    function = only(text)
    assert [(p.name, p.kind, p.annotation, p.default) for p in function.parameters] == [
        ("a", "positional_only", None, None),
        ("b", "positional", "int", "1 + 2"),
        ("args", "var_positional", "'T'", None),
        ("c", "keyword_only", None, None),
        ("d", "keyword_only", "A[\n    0]", "3"),
        ("kwargs", "var_keyword", None, None),
    ]
    assert function.returns == "A | B"


def test_decorators_belong_to_the_function() -> None:
    function = only("@ jax.jit\n@partial(\n    f, x=1)\ndef g(): ...\n")
    assert function.decorators == ("jax.jit", "partial(\n    f, x=1)")
    assert function.range.start == Position(0, 0)


@pytest.mark.parametrize(
    ("written", "start", "docstring"),
    [
        ('"""Doc."""', 7, "Doc."),
        ("'Doc.'", 5, "Doc."),
        ('r"""a\\nb"""', 8, "a\\nb"),
        ('"a\\"b"', 5, 'a\\"b'),
        ('("Doc.")', 6, "Doc."),
        ('"""𝒳\n\té\n"""', 7, "𝒳\n\té\n"),
    ],
)
def test_docstrings_are_kept_as_written(written: str, start: int, docstring: str) -> None:
    function = only(f"def f():\n    {written}\n")
    assert function.docstring is not None
    assert function.docstring.text == docstring
    assert function.docstring.start == Position(1, start)


@pytest.mark.parametrize(
    "written", ['"a" "b"', 'f"a"', 'b"a"', '("a"\n     "b")', "1", '"a" + "b"']
)
def test_what_has_no_single_source_is_no_docstring(written: str) -> None:
    assert only(f"def f():\n    {written}\n").docstring is None


def test_methods_know_the_docstring_of_their_class() -> None:
    function = only('class A:\n    """Of A."""\n\n    def m(self): ...\n')
    assert function.class_docstring is not None
    assert function.class_docstring.text == "Of A."
    assert function.class_docstring.start == Position(1, 7)


@pytest.mark.parametrize(
    ("decorator", "static"),
    [
        ("@jax.jit", ()),
        ("@partial(jax.jit, static_argnames='mode')", ("mode",)),
        ("@functools.partial(jit, static_argnames=('mode', 'n'))", ("n", "mode")),
        ("@jax.jit(static_argnums=1)", ("n",)),
        ("@partial(jax.jit, static_argnums=(-1, 0))", ("x", "n")),
        ("@partial(jax.jit, static_argnums=(7,))", ()),
        ("@partial(jax.jit, static_argnames=NAMES)", ()),
        ("@other\n@partial(jax.jit, static_argnums=[1])", ("n",)),
        ("@partial(other, static_argnums=1)", ()),
    ],
)
def test_static_arguments_of_a_decorating_jit(decorator: str, static: tuple[str, ...]) -> None:
    assert only(f"{decorator}\ndef f(x, n, *, mode): ...\n").static_names == static


def test_static_arguments_of_a_jit_further_down() -> None:
    text = "def f(x, n): ...\ndef g(x, n): ...\nf = jax.jit(f, static_argnums=1)\nh = jax.jit(g, static_argnums=1)\n"
    found = functions(text)
    assert found["f"].static_names == ("n",)
    assert found["g"].static_names == ()
    edited = Module.parse(text).edited(text.replace("f, static_argnums=1", "f, static_argnums=0"))
    assert {f.qualname: f.static_names for _, f in edited.functions}["f"] == ("x",)


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("def f():\n  return 1\n", "  "),
        ("def f():\n\treturn 1\n", "\t"),
        ("def f(): return 1\n", "    "),
        ("class A:\n    def f(self): return 1\n", "        "),
    ],
)
def test_the_bodys_indent(text: str, indent: str) -> None:
    assert only(text).body_indent == indent


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    def g(y):\n        return $0y\n    return g\n",
        "def f(x):\n    $0def g(y): return y\n",
        "def f(x):\n    @a$0\n    def g(y): return y\n",
    ],
)
def test_the_innermost_function_at_a_position(text: str) -> None:
    text = "\n\n# head\n" + text
    before, after = text.split("$0")
    position = Position(before.count("\n"), len(before.rpartition("\n")[2]))
    found = Module.parse(before + after).function_at(position)
    assert found is not None
    assert found[0].first_line == 3
    assert found[1].qualname == "f.<locals>.g"


def test_between_functions_there_is_none() -> None:
    module = Module.parse("def f():\n    pass\n\nx = 1\n")
    assert module.function_at(Position(2, 0)) is None
    assert module.function_at(Position(3, 0)) is None
