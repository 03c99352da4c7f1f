"""The names that Python code binds and reads: the one place that knows all forms of binding.

They are those of "Binding of names" in Python's reference: assignments, loops, `with`, imports,
definitions, parameters, `except … as e`, patterns of `match`, `:=` and `del`. A test compares them
with Python's own symbol tables. `global` and `nonlocal` bind nothing by themselves.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds, without those that its children bind."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name


def bound_in(*nodes: ast.AST) -> Iterator[str]:
    """Yield the names that nodes bind anywhere, also in the functions and classes in them."""
    for node in nodes:
        for inner in ast.walk(node):
            yield from bound_by(inner)


def bound_in_scope(*nodes: ast.AST, blocks: bool = True) -> Iterator[str]:
    """Yield the names that nodes bind in the scope that they are in.

    Those of functions, classes and comprehensions in them are not among these. Without `blocks`,
    they are those of a compound statement's head alone: `for x in …`, `except E as e`.
    """
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                yield from bound_by(node)
                waiting += outer_expressions(node)
            case _ if isinstance(node, _COMPREHENSIONS):
                # PEP 572: `:=` binds in the scope around a comprehension.
                walruses = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                yield from (walrus.target.id for walrus in walruses)
            case _:
                yield from bound_by(node)
                children = ast.iter_child_nodes(node)
                waiting += (c for c in children if blocks or not isinstance(c, ast.stmt))


def outer_expressions(node: _Function | ast.ClassDef) -> list[ast.expr]:
    """Return the expressions of a definition that are evaluated in the scope around it."""
    parts = [] if isinstance(node, ast.Lambda) else list(node.decorator_list)
    if isinstance(node, ast.ClassDef):
        return [*parts, *node.bases, *(keyword.value for keyword in node.keywords)]
    return [*parts, *node.args.defaults, *filter(None, node.args.kw_defaults)]


def parameters_of(arguments: ast.arguments) -> Iterator[str]:
    """Yield the names of all parameters of a function, with those of `*args` and `**kwargs`."""
    return (node.arg for node in ast.iter_child_nodes(arguments) if isinstance(node, ast.arg))


def with_defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters of a function, but `*args` and `**kwargs`, with their defaults."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [*zip(positional, [*missing, *arguments.defaults], strict=True), *named]


def read_in(*nodes: ast.AST) -> Iterator[str]:
    """Yield the names that nodes read anywhere, also those that they bind."""
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Load()) | ast.AugAssign(target=ast.Name(id=name)):
                    yield name


def free_in(expression: str) -> tuple[str, ...]:
    """Return the names that an expression reads and does not bind, sorted.

    Raises:
        SyntaxError: (or ValueError, RecursionError, MemoryError) it does not parse.
    """
    return tuple(sorted(set(_free(symtable.symtable(expression, "<expression>", "eval")))))


def _free(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        outside = not symbol.is_assigned() if top else symbol.is_global()
        if symbol.is_referenced() and outside:
            yield symbol.get_name()
    for child in table.get_children():
        yield from _free(child)


def name_set(text: str) -> frozenset[str]:
    """Return the words of a text, as tables of names are written that are looked up."""
    return frozenset(text.split())


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, as tables of names are written."""
    return tuple(text.split())
