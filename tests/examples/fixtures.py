"""Functions for these tests, made from source text by `ast` alone."""

from __future__ import annotations

import ast
import re
from textwrap import dedent

from jaxsight.engine.functions import Docstring, Function, FunctionKind, Parameter, ParameterKind
from jaxsight.engine.text import Position, Range

KINDS: dict[str, FunctionKind] = {
    "classmethod": "classmethod",
    "staticmethod": "staticmethod",
    "property": "property",
}


def functions_in(source: str) -> dict[str, Function]:
    """Every function of the source (top level and in classes) by its qualified name; the source is one chunk."""
    found: dict[str, Function] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef():
                found[node.name] = _function(source, node, None)
            case ast.ClassDef():
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef):
                        found[f"{node.name}.{inner.name}"] = _function(source, inner, node)
    return found


def function(source: str, name: str | None = None) -> Function:
    found = functions_in(dedent(source))
    return found[name] if name is not None else next(iter(found.values()))


def _function(source: str, node: ast.FunctionDef, owner: ast.ClassDef | None) -> Function:
    decorators = tuple(ast.unparse(d) for d in node.decorator_list)
    kind: FunctionKind = "function" if owner is None else "method"
    for decorator in decorators:
        kind = KINDS.get(decorator, kind)
    statics = [re.search(r"static_argnames=(.*)\)", d) for d in decorators]
    names = [ast.literal_eval(m[1]) for m in statics if m]
    name_line = node.lineno - 1
    name_column = source.splitlines()[name_line].index(node.name, node.col_offset + 3)
    body = node.body[0]
    return Function(
        qualname=node.name if owner is None else f"{owner.name}.{node.name}",
        kind=kind,
        range=_range(node),
        name_range=Range(
            Position(name_line, name_column), Position(name_line, name_column + len(node.name))
        ),
        parameters=tuple(_parameters(node.args)),
        decorators=decorators,
        docstring=_docstring(source, node),
        class_docstring=_docstring(source, owner) if owner is not None else None,
        static_names=tuple(
            n for group in names for n in ([group] if isinstance(group, str) else group)
        ),
        body_indent=" " * body.col_offset,
        body_start=Position(body.lineno - 1, body.col_offset),
    )


def _parameters(arguments: ast.arguments) -> list[Parameter]:
    made: list[Parameter] = []

    def add(arg: ast.arg, kind: ParameterKind, default: ast.expr | None = None) -> None:
        start = Position(arg.lineno - 1, arg.col_offset)
        made.append(
            Parameter(
                arg.arg,
                kind,
                Range(start, Position(start.line, start.column + len(arg.arg))),
                ast.unparse(arg.annotation) if arg.annotation else None,
                ast.unparse(default) if default else None,
            )
        )

    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for number, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        kind: ParameterKind = (
            "positional_only" if number < len(arguments.posonlyargs) else "positional"
        )
        add(arg, kind, default)
    if arguments.vararg:
        add(arguments.vararg, "var_positional")
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(arg, "keyword_only", default)
    if arguments.kwarg:
        add(arguments.kwarg, "var_keyword")
    return made


def _range(node: ast.stmt | ast.expr) -> Range:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Range(
        Position(node.lineno - 1, node.col_offset),
        Position(node.end_lineno - 1, node.end_col_offset),
    )


def _docstring(source: str, node: ast.FunctionDef | ast.ClassDef) -> Docstring | None:
    first = node.body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return None
    if not isinstance(first.value.value, str):
        return None
    raw = ast.get_source_segment(source, first.value)
    assert raw is not None
    opening = re.match(r"[rRuU]?(\"\"\"|'''|\"|')", raw)
    assert opening is not None
    start = Position(first.lineno - 1, first.col_offset + opening.end())
    return Docstring(start, raw[opening.end() : len(raw) - len(opening[1])])
