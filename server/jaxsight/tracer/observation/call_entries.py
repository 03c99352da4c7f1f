"""A statement at the start of a function that reports the arguments of each call.

It is added to functions of modules and to methods of their classes, whose callers may be traced.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

NAME = "__jaxsight_called__"
"""The global (or builtin) that is called with the number of an entry and the arguments.

It ends in `__`, so that it is never mangled.
"""

_LOAD = ast.Load()


@dataclass(frozen=True, slots=True)
class Entry:
    """A function whose calls are reported."""

    function: str
    """Its qualified name."""
    parameters: tuple[str, ...]
    """Those whose values are reported, `*args` and `**kwargs` with their stars."""


def entry_of(node: ast.FunctionDef, classes: tuple[str, ...]) -> Entry | None:
    """Return the entry of a function; `None` if its calls are not reported.

    Args:
        node: the function.
        classes: the classes around it, outermost first.
    """
    special = node.name.startswith("__") and node.name.endswith("__")
    args = node.args
    variadic = [f"*{args.vararg.arg}"] if args.vararg is not None else []
    keywords = [f"**{args.kwarg.arg}"] if args.kwarg is not None else []
    plain = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    parameters = [*plain, *variadic, *(arg.arg for arg in args.kwonlyargs), *keywords]
    decorators = map(ast.unparse, node.decorator_list if classes else ())
    if any(each.rpartition(".")[2] == "classmethod" for each in decorators):
        parameters = parameters[1:]
    if special and node.name not in ("__call__", "__init__"):
        return None
    return Entry(".".join((*classes, node.name)), tuple(parameters))


def statement(node: ast.FunctionDef, entry: Entry, number: int) -> ast.stmt:
    """Return the statement that reports a call, at the position of the function's name."""
    names = [ast.Name(parameter.lstrip("*"), _LOAD) for parameter in entry.parameters]
    arguments = ast.Tuple(list[ast.expr](names), _LOAD)
    call = ast.Expr(ast.Call(ast.Name(NAME, _LOAD), [ast.Constant(number), arguments], []))
    line, column = node.lineno, node.col_offset
    for each in ast.walk(call):
        if isinstance(each, ast.expr | ast.stmt):
            each.lineno = each.end_lineno = line
            each.col_offset = each.end_col_offset = column
    return call


def add_entries(tree: ast.Module, first: int) -> list[Entry]:
    """Add the statements to a module's tree in place; return the entries, numbered from `first`."""
    entries: list[Entry] = []
    _add(tree.body, (), first, entries)
    return entries


def _add(
    statements: list[ast.stmt], classes: tuple[str, ...], first: int, entries: list[Entry]
) -> None:
    for node in statements:
        match node:
            case ast.FunctionDef():
                if (entry := entry_of(node, classes)) is not None:
                    place = 1 if ast.get_docstring(node, clean=False) is not None else 0
                    node.body.insert(place, statement(node, entry, first + len(entries)))
                    entries.append(entry)
            case ast.ClassDef():
                _add(node.body, (*classes, node.name), first, entries)
            case ast.If() | ast.Try() | ast.With():
                for block in ("body", "orelse", "finalbody"):
                    _add(getattr(node, block, []), classes, first, entries)
            case _:
                pass
