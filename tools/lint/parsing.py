"""The threads of the server's process parse one at a time, through `text/parsing.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Module, Offender, inside

SERVERS = frozenset(
    {
        *("cli", "examples", "features", "lsp", "projects", "queries", "rules", "session.py"),
        *("settings", "source", "text", "trust", "workers"),
    }
)
"""What runs in the server's process, which has several threads."""
TREES = frozenset(
    {
        "rules/jx443_undefined_gradient/rule.py",
        "rules/text/python_loops.py",
        "rules/text/transformations.py",
        "source/analysis/shape_unpacking.py",
        "source/definitions.py",
        "source/differentiated.py",
        "text/parsing.py",
    }
)
"""Modules that take the values of literals in syntax trees, which parses nothing."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield each call that parses outside of `with quiet()`."""
    for module in checkout.modules:
        name = inside(module.path)
        if name.partition("/")[0] in SERVERS:
            for line in _parses(module, name in TREES):
                yield Offender(module.path, line, "parses without `text/parsing.py`")


def _parses(module: Module, has_trees: bool) -> Iterator[int]:
    alone: set[ast.AST] = set()
    for node in module.nodes(ast.With):
        match node.items:
            case [ast.withitem(ast.Call(func=ast.Name(id="quiet")))]:
                alone |= set(ast.walk(node))
    for call in module.nodes(ast.Call):
        match call.func:
            case ast.Attribute(ast.Name("ast"), "parse") if call not in alone:
                yield call.lineno
            case ast.Attribute(ast.Name("ast"), "literal_eval") if call not in alone:
                if not has_trees:
                    yield call.lineno
