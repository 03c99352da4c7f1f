"""Names that code binds and reads: compared with Python's own symbol tables."""

from __future__ import annotations

import ast
import symtable

from hypothesis import given
from hypothesis import strategies as st

from jaxsight.text import names

BINDING = (
    "x{0} = 1",
    "x{0}: int = 1",
    "(x{0}, *x{1}), y.z, w[x{2}] = v",
    "x{0} += 1",
    "del x{0}",
    "import os.path",
    "import numpy as x{0}, math",
    "from os import path, sep as x{0}",
    "def x{0}(x{1}, *x{2}, k=(x{3} := 1), **kw): x{4} = x{1}",
    "@d(x{0} := 1)\nclass x{1}(B, key=(x{2} := 1)):\n x{3} = 1\n def m(self): pass",
    "async def x{0}(): pass",
    "for x{0}, y in z:\n x{1} = y\nelse:\n x{2} = 1",
    "while (x{0} := f()):\n x{1} = 1",
    "with a as x{0}, b as (x{1}, x{2}):\n x{3} = 1",
    "try:\n x{0} = 1\nexcept E as x{1}:\n x{2} = 1\nfinally:\n x{3} = 1",
    "match v:\n case [x{0}, *x{1}]: x{2} = 1\n case {{'k': x{3}, **x{4}}}: pass\n case C(a=x{2}) as y: pass",
    "f = lambda x{0}, k=(x{1} := 1): (x{2} := 1)",
    "y = list(x{0} for x{0} in z if (x{1} := x{0}))",
    "y = dict((x{0}, list(x{1} for x{1} in x{0})) for x{0} in (lambda x{2}: x{2})(z))",
    "if a:\n x{0} = 1\nelse:\n import sys as x{1}",
    "print(x{0}, (x{1} := 2))",
)
"""Statements of each kind; `{0}` to `{4}` are the numbers of names.

Comprehensions are generators, because Python 3.12 counts the names of others as the function's.
"""


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Return the statements of a function, some of them inside others."""
    statements = draw(st.lists(st.sampled_from(BINDING), min_size=1, max_size=5))
    numbers = st.permutations(range(6))
    return "\n".join(statement.format(*draw(numbers)) for statement in statements)


def table_of(body: str, parameters: str = "") -> symtable.SymbolTable:
    head = f"def function({parameters}):\n"
    text = head + "\n".join(f" {line}" for line in body.split("\n"))
    tables = symtable.symtable(text, "<test>", "exec").get_children()
    return next(table for table in tables if table.get_name() == "function")


@given(bodies())
def test_names_bound_in_a_scope_are_those_of_its_symbol_table(body: str) -> None:
    table = table_of(body)
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    assert set(names.bound_in_scope(*ast.parse(body).body)) == bound


@given(bodies())
def test_names_bound_anywhere_are_those_of_all_symbol_tables(body: str) -> None:
    bound, waiting = set[str](), [table_of(body)]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        bound |= {
            s.get_name()
            for s in table.get_symbols()
            if (s.is_assigned() or s.is_imported() or s.is_parameter())
            and not s.get_name().startswith(".")
        }
    assert set(names.bound_in(ast.parse(body))) == bound


@given(bodies())
def test_heads_and_blocks_bind_what_the_whole_binds(body: str) -> None:
    found, waiting = set[str](), list(ast.parse(body).body)
    while waiting:
        statement = waiting.pop()
        found.update(names.bound_in_scope(statement, blocks=False))
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [
                n for n in ast.walk(statement) if isinstance(n, ast.stmt) and n is not statement
            ]
    assert found >= set(names.bound_in_scope(*ast.parse(body).body))


def test_parameters_are_all_of_a_signature() -> None:
    tree = ast.parse("def f(a, /, b, *c, d=(lambda x: x), **e): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert sorted(names.parameters_of(tree.args)) == ["a", "b", "c", "d", "e"]


def test_updates_read_and_free_names_are_not_bound_inside() -> None:
    assert sorted(names.read_in(ast.parse("x += y[z]; w = 1"))) == ["x", "y", "z"]
    assert names.free_in("[x + y for x in z] + (lambda a, b=c: a + d)(1)") == ("c", "d", "y", "z")
