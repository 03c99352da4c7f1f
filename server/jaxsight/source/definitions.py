"""The functions that a text defines, with their parameters, docstrings and static arguments.

They are read from a syntax tree and its text. All ranges count lines from the text's first line and
columns in code points.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxsight.source.analysis.syntax_trees import blocks_of, last_name
from jaxsight.source.text import Position, Range, SourceText
from jaxsight.text.names import with_defaults

# A function as its text alone describes it: its place, its parameters, its docstring.
#
# All ranges are relative to the chunk that contains the function (line 0 is the chunk's first
# line), so a chunk that moves keeps its functions. Values come from a trace, never from here.


ParameterKind = Literal[
    "positional_only", "positional", "var_positional", "keyword_only", "var_keyword"
]
Refused = Literal["", "async", "generator", "nested"]
FunctionKind = Literal["function", "method", "classmethod", "staticmethod", "property"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as written; `annotation` and `default` are their source text."""

    name: str
    kind: ParameterKind
    range: Range
    """The name alone."""
    annotation: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Docstring:
    """The source text of a docstring between its quotes, and where it begins.

    The text is as written, with escapes unresolved.
    """

    start: Position
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A `def` at the top level, in a class, or nested in another function.

    `qualname` is Python's (`Model.__call__`, `outer.<locals>.inner`). `refused` says why the
    function cannot be traced on its own (`async`, `generator`, `nested`), otherwise it is empty.
    """

    qualname: str
    kind: FunctionKind
    range: Range
    """The whole statement, decorators included."""
    name_range: Range
    body_start: Position
    """The start of the body's first statement, which may be a docstring."""
    parameters: tuple[Parameter, ...]
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    docstring: Docstring | None = None
    class_docstring: Docstring | None = None
    """The docstring of the method's class, which may give `self` for all its methods."""
    static_names: tuple[str, ...] = ()
    """Parameters that a decorating `jax.jit` makes static, by name or number."""
    refused: Refused = ""
    body_indent: str = "    "


_ONE_STRING = re.compile(
    r"""[rRuU]?(?:'''([^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*)'''"""
    r'''|"""([^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*)"""'''
    r"""|'(?!'')([^'\\]*(?:\\.[^'\\]*)*)'|"(?!"")([^"\\]*(?:\\.[^"\\]*)*)")""",
    re.DOTALL,
)
_NAME_AFTER_DEF = re.compile(r"(?:async(?:\s|\\\n)+)?def(?:\s|\\\n)+(\w+)")
_IDENTIFIER = re.compile(r"\w+")
_PROPERTIES = frozenset({"property", "cached_property"})

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(tree: ast.Module, text: str) -> tuple[Function, ...]:
    """Return every `def` of the text, outer ones first, in text order.

    Overloads are excluded, because they are never called.
    """
    # Most statements of a module define nothing: they need no second look at their lines.
    if "def" not in text:
        return ()
    source = SourceText(text)
    return tuple(_in_block(tree.body, source, _Context()))


@dataclass(frozen=True, slots=True)
class _Context:
    """The surroundings of a `def`: the prefix of its qualified name, its class, its function."""

    prefix: str = ""
    in_class: bool = False
    nested: bool = False
    class_docstring: Docstring | None = None


def _in_block(
    body: Sequence[ast.stmt], source: SourceText, context: _Context
) -> Iterator[Function]:
    for statement in body:
        match statement:
            case ast.FunctionDef(decorator_list=decorators) if any(
                last_name(decorator) == "overload" for decorator in decorators
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield _function(statement, source, context)
                inside = _Context(f"{context.prefix}{statement.name}.<locals>.", nested=True)
                yield from _in_block(statement.body, source, inside)
            case ast.ClassDef():
                inside = _Context(
                    f"{context.prefix}{statement.name}.",
                    in_class=True,
                    nested=context.nested,
                    class_docstring=_docstring(statement.body, source),
                )
                yield from _in_block(statement.body, source, inside)
            case _:
                for block in blocks_of(statement):
                    yield from _in_block(block, source, context)


def _function(node: FunctionNode, source: SourceText, context: _Context) -> Function:
    statement_range = source.range(node)
    # Python counts a decorated definition from its `def`, and a decorator from its expression: its
    # `@` has no place in the tree.
    start = statement_range.start
    if node.decorator_list:
        start = _at_sign(source, source.range(node.decorator_list[0]).start)
    parameters = tuple(_parameters(node.args, source))
    body = source.range(node.body[0])
    static = next(filter(None, map(static_of_jit, node.decorator_list)), Static())
    return Function(
        qualname=context.prefix + node.name,
        kind=_kind(node, context),
        range=Range(start, statement_range.end),
        name_range=_name_range(node, source, statement_range),
        parameters=parameters,
        returns=source.text_of(node.returns) if node.returns else None,
        decorators=tuple(source.text_of(decorator) for decorator in node.decorator_list),
        docstring=_docstring(node.body, source),
        class_docstring=context.class_docstring,
        static_names=static.among(parameters),
        refused=_refused(node, source, context),
        body_indent=_body_indent(source, statement_range.start, body.start),
        body_start=body.start,
    )


def _at_sign(source: SourceText, expression: Position) -> Position:
    """Return the position of the `@` before a decorator's expression.

    It may be on an earlier line, before a backslash or a bracket.
    """
    for line in range(expression.line, -1, -1):
        end = expression.column if line == expression.line else len(source.lines[line])
        column = source.lines[line].rfind("@", 0, end)
        if column >= 0:
            return Position(line, column)
    return expression


def _name_range(node: FunctionNode, source: SourceText, statement_range: Range) -> Range:
    # The tree has no place for the name of a definition, only for the whole statement.
    start = statement_range.start
    head = source.lines[start.line][start.column :]
    # A name on a line of its own comes after backslashes.
    text = head if _NAME_AFTER_DEF.match(head) else source.between(statement_range)
    name = _NAME_AFTER_DEF.match(text)
    if name is None:
        return Range(start, start)
    down = text.count("\n", 0, name.start(1))
    left = text.rfind("\n", 0, name.start(1)) + 1 if down else -start.column
    line = start.line + down
    return Range(Position(line, name.start(1) - left), Position(line, name.end(1) - left))


def _parameters(arguments: ast.arguments, source: SourceText) -> Iterator[Parameter]:
    defaults = dict(with_defaults(arguments))
    kinds: tuple[tuple[ParameterKind, Sequence[ast.arg | None]], ...] = (
        ("positional_only", arguments.posonlyargs),
        ("positional", arguments.args),
        ("var_positional", [arguments.vararg]),
        ("keyword_only", arguments.kwonlyargs),
        ("var_keyword", [arguments.kwarg]),
    )
    for kind, nodes in kinds:
        for node in filter(None, nodes):
            default = defaults.get(node)
            yield Parameter(
                name=node.arg,
                kind=kind,
                range=name_of_argument(node, source),
                annotation=source.text_of(node.annotation) if node.annotation else None,
                default=source.text_of(default) if default else None,
            )


def name_of_argument(node: ast.arg, source: SourceText) -> Range:
    """Return the range of a parameter's name, without its annotation."""
    start = source.position(node.lineno, node.col_offset)
    written = _IDENTIFIER.match(source.lines[start.line], start.column)
    length = len(written.group()) if written else len(node.arg)
    return Range(start, Position(start.line, start.column + length))


def _docstring(body: Sequence[ast.stmt], source: SourceText) -> Docstring | None:
    """Return the docstring if it is one plain string literal.

    An implicit concatenation has no single source text.
    """
    match body:
        case [ast.Expr(value=ast.Constant(value=str()) as node), *_]:
            literal_range = source.range(node)
            literal = _ONE_STRING.fullmatch(source.between(literal_range))
            if literal is None:
                return None
            start, group = literal_range.start, literal.lastindex or 0
            text_start = Position(start.line, start.column + literal.start(group))
            return Docstring(text_start, literal.group(group))
    return None


def _body_indent(source: SourceText, definition: Position, body: Position) -> str:
    before = source.lines[body.line][: body.column]
    if body.line != definition.line and not before.strip():
        return before
    line = source.lines[definition.line]
    return line[: len(line) - len(line.lstrip())] + "    "


def _kind(node: FunctionNode, context: _Context) -> FunctionKind:
    if not context.in_class:
        return "function"
    for decorator in node.decorator_list:
        match decorator:
            case ast.Name(id="classmethod"):
                return "classmethod"
            case ast.Name(id="staticmethod"):
                return "staticmethod"
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _PROPERTIES:
                return "property"
            case ast.Attribute(attr="setter" | "getter" | "deleter"):
                return "property"
    # Python makes `__new__` static without a decorator (data model, "Basic customization").
    return "staticmethod" if node.name == "__new__" else "method"


def _refused(node: FunctionNode, source: SourceText, context: _Context) -> Refused:
    # A nested function is made by a call of the function around it, with its variables.
    if context.nested:
        return "nested"
    if isinstance(node, ast.AsyncFunctionDef):
        return "async"
    return "generator" if source.yields and _yields(node) else ""


def _yields(node: FunctionNode) -> bool:
    """Return whether the function itself yields; functions defined inside it do not count."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        match stack.pop():
            case ast.Yield() | ast.YieldFrom():
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                pass
            case inner:
                stack.extend(ast.iter_child_nodes(inner))
    return False


@dataclass(frozen=True, slots=True)
class Static:
    """The static arguments of a call of `jax.jit`: names, and positions in the parameter list."""

    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def among(self, parameters: Sequence[Parameter]) -> tuple[str, ...]:
        """Return the names of the static parameters, in parameter order."""
        positional = [p.name for p in parameters if p.kind in ("positional_only", "positional")]
        count = len(positional)
        # As JAX does (`_ensure_inbounds` in `jax/_src/api_util.py`), negative numbers count from
        # the end. What is out of bounds is an error of the call, not of the text.
        static = {*self.names, *(positional[n] for n in self.numbers if -count <= n < count)}
        return tuple(p.name for p in parameters if p.name in static)


def static_of_jit(call: ast.expr) -> Static | None:
    """Return the static arguments of `jax.jit(…, static_argnames=…)` or `partial(jax.jit, …)`.

    Returns `None` for other calls.
    """
    match call:
        case ast.Call(func=func, args=args) if last_name(func) == "jit" or (
            last_name(func) == "partial" and args and last_name(args[0]) == "jit"
        ):
            given = {keyword.arg: _literals(keyword.value) for keyword in call.keywords}
            names, numbers = given.get("static_argnames", ()), given.get("static_argnums", ())
            return Static(
                tuple(name for name in names if isinstance(name, str)),
                tuple(number for number in numbers if isinstance(number, int)),
            )
    return None


def _literals(node: ast.expr) -> tuple[object, ...]:
    try:
        value = ast.literal_eval(node)
    # All that `ast.literal_eval` may raise, as its documentation says.
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(value) if isinstance(value, tuple | list | set | frozenset) else (value,)
