"""What is left of a cell when IPython's extensions are taken out."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.text.magics import display, without_magics

STAYS = [
    "x = 5 % 3",
    "x = (a\n     % b\n     % c)",
    'text = """\n%matplotlib inline\n!ls\n"""',
    "x = a \\\n    % b",
    "name = 'what?'",
    "# is it so?",
    "assert x != y",
    "f'{x!r}'",
    "x = {\n    'a': 1 % 2,  # ) \"\n    'b': [1\n    % 2]}",
    "def f():\n    '''Is it?\n    ! no\n    '''\n    return '%d' % 1",
]


@pytest.mark.parametrize("cell", STAYS)
def test_python_stays_as_it_is(cell: str) -> None:
    assert without_magics(cell) == cell


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline\nx = 1", "\nx = 1"),
        ("!pip install jax\nx = 1", "\nx = 1"),
        ("jnp.sum?\nx = 1", "\nx = 1"),
        ("?jnp\n??jnp.sum\nx = 1", "\n\nx = 1"),
        ("if a:\n    !ls\nx = 1", "if a:\n    pass\nx = 1"),
        ("files = !ls *.py\nx = 1", "files = None\nx = 1"),
        ("t = %timeit -o f(x)\nx = 1", "t = None\nx = 1"),
        ("%load_ext \\\n  autoreload\nx = 1", "\n\nx = 1"),
        ("%%capture\nx = 1", "\nx = 1"),
        ("%%capture\n%%prun\nx = 1", "\n\nx = 1"),
        ("%%prun -r\n!ls\nx = 1", "\n\nx = 1"),
        ("%%bash\nls\necho", "\n\n"),
        ("%%writefile x.py\nimport os", "\n"),
        ("%%time", ""),
        ("%%time\nx = (", "\nx = ("),
        ("x = f(1)  # ok?\n%time !ls", "x = f(1)  # ok?\n"),
        ("%timeit y = 2", ""),
    ],
)
def test_magics_leave_their_lines_empty(cell: str, python: str) -> None:
    assert without_magics(cell) == python


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%%time\nx = 1", "0 or 1\nx = 1"),
        ("%%time\n%%capture\nx = 1", "0 or 1\n\nx = 1"),
        ("%%timeit -n 10\n!ls\nx = 1\n\nfor i in x:\n    f(i)", None),
    ],
)
def test_timed_cells_have_the_number_of_their_statements(cell: str, python: str | None) -> None:
    assert without_magics(cell) == (python or "0 or 2\n\nx = 1\n\nfor i in x:\n    f(i)")


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%time y = f(2)", "0;    y = f(2)"),
        (
            "%timeit -n 100 f.jit(x).block_until_ready()",
            "0 and          f.jit(x).block_until_ready()",
        ),
        ("%timeit -r3 -q f(x)  # slow", "0 and          f(x)  # slow"),
    ],
)
def test_timed_python_stays_in_its_columns(cell: str, python: str) -> None:
    assert without_magics(cell) == python
    ast.parse(python)


@pytest.mark.parametrize("cell", ["%time y = f(2)", "%timeit f(x)", "x = 0 and 1", "y = f(2)"])
def test_timed_lines_are_shown_with_their_magic(cell: str) -> None:
    assert display(without_magics(cell)) == cell


PIECES = st.sampled_from(
    [
        "%time x",
        "!ls",
        "x?",
        "x = !ls",
        "y = 1",
        "if y:",
        "    %time",
        "    z = 2",
        "(1",
        "% 2)",
        "'''",
        "%%time",
        "a \\",
    ]
)


@given(st.lists(PIECES, max_size=8))
def test_no_line_moves(lines: list[str]) -> None:
    cell = "\n".join(lines)
    assert without_magics(cell).count("\n") == cell.count("\n")


PYTHON = st.sampled_from(
    ["y = 7 % 3", "x = (1\n% 2)", "s = '''\n!a\n'''", "def f():\n    return 1", "w = 'a?'"]
)


@given(st.lists(PYTHON, max_size=6))
def test_cells_of_python_alone_stay_as_they_are(statements: list[str]) -> None:
    cell = "\n".join(statements)
    ast.parse(cell)
    assert without_magics(cell) == cell
