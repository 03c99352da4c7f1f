"""How a text falls into chunks, and what becomes of text that does not parse."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range, normalized
from tests.source.texts import heaps, modules


def texts(module: Module) -> list[str]:
    return [chunk.text for chunk in module.chunks]


def names(module: Module) -> list[str]:
    return [function.qualname for _, function in module.functions]


def broken(module: Module) -> list[str]:
    return [chunk.text for chunk in module.chunks if chunk.broken is not None]


def statements(text: str) -> list[str]:
    """The dumps of a text's statements; those of its chunks, put together, must be the same."""
    return [ast.dump(statement) for statement in ast.parse(text).body]


def assert_chunks_are_the_statements(text: str) -> None:
    module = Module.parse(text)
    read = [dump for chunk in module.chunks for dump in statements(chunk.text)]
    assert read == statements(normalized(text))
    lines = normalized(text).split("\n")
    for chunk in module.chunks:
        assert "\n".join(lines[chunk.first_line : chunk.last_line + 1]) == chunk.text.removesuffix(
            "\n"
        )
    ends = [chunk.last_line for chunk in module.chunks]
    assert all(c.first_line > end for c, end in zip(module.chunks[1:], ends, strict=False))


def test_chunks_are_statements_without_the_comments_between_them() -> None:
    module = Module.parse(
        "# head\nimport jax\n\n@jax.jit\n# why\ndef f(x):\n    return x\n    # tail\n\ny = 1; z = 2\n"
    )
    assert texts(module) == [
        "import jax",
        "@jax.jit\n# why\ndef f(x):\n    return x",
        "y = 1; z = 2",
    ]
    assert [chunk.first_line for chunk in module.chunks] == [1, 3, 9]


@pytest.mark.parametrize(
    "text",
    [
        '"""Doc\nat the first column\n"""\nx = 1\n',
        "x = (\n1,\n2,\n)\ny = 2\n",
        "x = '''\ndef no(): pass\n# ' no\n'''\ny = 1\n",
        'x = """\n# """\n\n# c\ny = 1\n',
        "x = 1 \\\n\n# c\ny = 2\n",
        "x = 1; \\\ny = 2\n",
        "x = \\\n1\n",
        "\\\n\nx = 1\n",
        "@a\n\n# c\n@b(\nc\n)\nclass A:\n  pass\nx = 1\n",
        "if a:\n  x\n# c\nelif b:\n  y\nelse:\n  z\ntry:\n  x\nexcept E:\n  y\nfinally:\n  z\n",
        "x = [\n'a', # it's\n\"b]\",\n]\n",
        "\fdef f(): pass\n  \fx = 1\n",
        "s = 'a\u2028b'\nt = 'c\x85d'\n",
        "def f():\n\treturn 1\n\nx = f()",
        "\ufeffimport jax\nx = 1\n",
        "a = 1\rb = 2\r\nc = 3\n",
        "from a import (\nb,\nc\n)\n",
        "x = 'a\\\nb'\ny = 1\n",
        "",
        "\n\n# only a comment",
        "match x:\n  case 1:\n    pass\ncase = 1\nmatch = 2\n",
    ],
)
def test_well_formed_text_falls_into_its_statements(text: str) -> None:
    assert broken(Module.parse(text)) == []
    assert_chunks_are_the_statements(text)


@settings(max_examples=300, deadline=None)
@given(modules())
def test_whatever_parses_falls_into_its_statements(text: str) -> None:
    assert broken(Module.parse(text)) == []
    assert_chunks_are_the_statements(text)


@settings(max_examples=300, deadline=None)
@given(heaps())
def test_every_line_of_code_is_in_one_chunk_whether_it_parses_or_not(text: str) -> None:
    module = Module.parse(text)
    covered = [
        line for chunk in module.chunks for line in range(chunk.first_line, chunk.last_line + 1)
    ]
    assert covered == sorted(set(covered))
    idle = re.compile(r"[ \t\f\\]*(#|\Z)")  # a lone backslash is no code either
    code = [i for i, line in enumerate(module.lines) if not idle.match(line)]
    assert set(code) <= set(covered)


def test_the_standard_library_falls_into_its_statements() -> None:
    for name in ("typing.py", "dataclasses.py", "textwrap.py", "argparse.py", "inspect.py"):
        text = (Path(ast.__file__).parent / name).read_text(encoding="utf-8")
        assert broken(Module.parse(text)) == []
        assert_chunks_are_the_statements(text)


BELOW = '\n\ndef below(x):\n    """Doc."""\n    return x\n\n\nclass Last:\n    def m(self): ...\n'


@pytest.mark.parametrize(
    "typed",
    [
        "def typed(x",
        "def typed(x):",
        "def typed(x):\n    return (x",
        "def typed(x):\n    return x[",
        'def typed(x):\n    """Doc',
        "def typed(x):\n    '''Doc",
        "def typed(x):\n    return 'a",
        "x = foo(",
        "x = {",
        "@",
        "@jax.jit(",
        "if x:",
        "x = ",
        "for i in",
        "class Typed(",
        "from a import (",
        "x = ]",
    ],
)
def test_what_is_being_typed_breaks_nothing_else(typed: str) -> None:
    above = 'import jax\n\ndef above(x):\n    """Doc."""\n    return x\n\n'
    module = Module.parse(above + typed + BELOW)
    assert names(module) == ["above", "below", "Last.m"]
    assert broken(module) == [typed]


def test_an_unclosed_docstring_breaks_its_function_only() -> None:
    module = Module.parse('def f(x):\n    """Doc\n    return x\n' + BELOW)
    assert names(module) == ["below", "Last.m"]
    assert module.syntax_problem is not None
    assert module.syntax_problem.range.start == Position(1, 4)
    assert module.syntax_problem.message == "unterminated triple-quoted string literal"


def test_the_syntax_problem_is_the_first_with_its_place_in_the_file() -> None:
    module = Module.parse("x = 1\n\ny = (1 +* 2)\nz = (\n")
    assert module.syntax_problem is not None
    assert module.syntax_problem.range == Range(Position(2, 8), Position(2, 9))
    assert Module.parse("x = 1\n").syntax_problem is None


def test_messages_name_no_line_numbers_of_the_chunk() -> None:
    problem = Module.parse("\n\n\nif x:\ny = 1\n").syntax_problem
    assert problem is not None
    assert problem.message == "expected an indented block after 'if' statement"


@pytest.mark.parametrize(
    "text",
    [
        "x = '\x00'\n",
        "x = '\ud800'\n",
        "(" * 3000 + "\n",
        "x = " + "-" * 9999 + "1",
        "if x: pass\n" + "elif x: pass\n" * 5000,
    ],
)
def test_what_python_cannot_read_at_all_is_broken(text: str) -> None:
    module = Module.parse("y = 1\n" + text)
    assert texts(module)[0] == "y = 1"
    assert module.syntax_problem is not None
    assert module.syntax_problem.message


def test_equal_chunks_share_what_is_known_of_them() -> None:
    one, other = Module.parse("def f(): pass\n"), Module.parse("\n\ndef f(): pass\n")
    assert one.chunks[0].statement is other.chunks[0].statement


def test_future_imports_give_their_compiler_flags() -> None:
    flags = Module.parse("from __future__ import annotations\nx = 1\n").bindings.future_flags
    code = compile("def f(x: undefined): ...", "f", "exec", flags=flags, dont_inherit=True)
    exec(code, {})


def test_reading_warns_of_nothing() -> None:
    assert broken(Module.parse('x = "\\d"\ny = 1 is 1\n')) == []


def test_chunks_are_found_by_position() -> None:
    module = Module.parse("\nx = 1\n\ndef f():\n    pass\n")
    at = [module.chunk_at(Position(line, 0)) for line in range(6)]
    assert [chunk and chunk.text[:3] for chunk in at] == [None, "x =", None, "def", "def", None]


def test_the_text_of_a_range_is_what_stands_there() -> None:
    module = Module.parse("é = '𝒳'\r\nx = [\r\n  1]\r\n")
    assert module.slice_text(Range(Position(0, 5), Position(0, 6))) == "𝒳"
    assert module.slice_text(Range(Position(1, 4), Position(2, 4))) == "[\n  1]"
    assert module.line(1) == "x = ["
    assert module.line(9) == ""
