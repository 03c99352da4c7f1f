"""The one-line faults that a module could have: edits in place, at positions of its syntax tree."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {"operator": 3, "condition": 3, "constant": 3, "return": 3, "await": 1, "message": 2}
"""Kinds of faults, and how many there are of each among 15."""

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_LOGS = re.compile(r"_?(log|logger|logging)")
# Faults in these are found by waiting, or not at all.
_TIMES = re.compile(
    r"timeout|deadline|patience|delay|grace|sleep|seconds|interval\b", re.IGNORECASE
)
_WORD = re.compile(r"(?<![\w{\\%])[A-Za-z]{3,}(?!\w)")
_SPACES = 2
"""Of a message, at least: a text of one or two words is more often a name."""
_LIMIT = 100
"""Numbers from here on are limits of sizes and lengths, which one more or less rarely reaches."""
_NOT_RUN = ("__repr__",)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one line."""

    file: str
    line: int
    kind: str
    before: str
    """The line without the fault."""
    after: str
    lines: tuple[int, ...]
    """Where this line itself is not executed by tests (imports execute it, or a statement begins
    above it), the lines whose tests stand for its tests, the narrowest first: see `resolved`."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What is written instead of a part of a line, in columns of UTF-8 as in `ast`."""

    kind: str
    line: int
    start: int
    end: int
    text: str
    statement: ast.stmt
    function: ast.AST | None
    """The innermost function around it."""


def edits(tree: ast.Module, lines: list[bytes]) -> Iterator[Edit]:
    """Yield what can be edited; some of it changes nothing, or no longer compiles."""
    for node, statement, function in _nodes(tree):
        for kind, (line, start, end), text in _of(node, lines, function):
            yield Edit(kind, line, start, end, text, statement, function)


def is_fault(before: str, after: str, kind: str) -> bool:
    """Return whether a module with an edit still compiles and is another program."""
    try:
        compile(after, "after", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    one, other = ast.dump(ast.parse(before)), ast.dump(ast.parse(after))
    if one == other:
        return False
    return kind != "message" or _without_strings(before) == _without_strings(after)


def edited(text: str, edit: Edit) -> str:
    """Return the line of an edit with it."""
    line = text.split("\n")[edit.line - 1].encode()
    return (line[: edit.start] + edit.text.encode() + line[edit.end :]).decode()


def replaced(text: str, line: int, before: str, after: str) -> str:
    """Return a text with another line; `ValueError` if the line is not as it was."""
    lines = text.split("\n")
    if lines[line - 1 : line] != [before]:
        raise ValueError(f"line {line} differs from the line of the fault")
    lines[line - 1] = after
    return "\n".join(lines)


_Part = tuple[int, int, int]
_Found = tuple[ast.AST, ast.stmt, ast.AST | None]


def _nodes(tree: ast.Module) -> Iterator[_Found]:
    """Yield all nodes that may be edited, with their statements and functions."""
    for statement in tree.body:
        yield from _below(statement, statement, None)


def _below(node: ast.AST, statement: ast.stmt, function: ast.AST | None) -> Iterator[_Found]:
    if isinstance(node, ast.stmt):
        statement = node
    if _is_skipped(node):
        return
    yield node, statement, function
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "bases", "decorator_list", "type_params"):
            continue
        inner = node if isinstance(node, _FUNCTIONS) else function
        for child in value if isinstance(value, list) else [value]:
            # Parts of an f-string are edited as one text; Python 3.11 has no positions for them.
            if isinstance(node, ast.JoinedStr) and (
                isinstance(child, ast.Constant) or sys.version_info < (3, 12)
            ):
                continue
            if isinstance(child, ast.AST):
                yield from _below(child, statement, inner)


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name=name):
            return name in _NOT_RUN
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if _LOGS.fullmatch(name):
            return True
        case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "ParamSpec" | "NewType" | "getLogger")):
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "Annotated")):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
    return type(node).__name__ == "TypeAlias"


def _of(
    node: ast.AST, lines: list[bytes], function: ast.AST | None
) -> Iterator[tuple[str, _Part, str]]:
    """Yield the edits of one node: kinds, parts of lines, their new texts."""
    line = lines[node.lineno - 1] if hasattr(node, "lineno") else b""
    if _TIMES.search(line.decode()):
        return
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            yield from _operator(left, op, right, lines)
        case ast.AugAssign(target=target, op=op, value=value):
            yield from _operator(target, op, value, lines)
        case ast.BoolOp(op=op, values=[first, second, *_]):
            yield from _operator(first, op, second, lines)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from _operator(left, op, right, lines)
        case ast.Await(value=awaited) if part := _part(node):
            if inner := _part(awaited):
                yield "await", part, _text(inner, lines)
        case ast.Return(value=ast.expr() as value) if part := _part(value):
            for text in _returned(value, function):
                yield "return", part, text
        case ast.Constant(value=value) if part := _part(node):
            yield from _constant(value, part, lines)
        case ast.JoinedStr() if part := _part(node):
            yield from _message(part, lines)
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield from _negated([test], lines)
        case ast.comprehension(ifs=tests):
            yield from _negated(tests, lines)
        case ast.match_case(guard=ast.expr() as test):
            yield from _negated([test], lines)


def _operator(
    left: ast.AST, op: ast.AST, right: ast.AST, lines: list[bytes]
) -> Iterator[tuple[str, _Part, str]]:
    before, after = _part(left), _part(right)
    if type(op) not in _OPERATORS or before is None or after is None or before[0] != after[0]:
        return
    written, other = _OPERATORS[type(op)]
    between = lines[before[0] - 1][before[2] : after[1]].decode()
    found = re.fullmatch(rf"([\s)]*)({re.escape(written)}=?)([\s(]*)", between)
    if found:
        start = before[2] + found.start(2)
        yield "operator", (before[0], start, start + len(written)), other


def _negated(tests: list[ast.expr], lines: list[bytes]) -> Iterator[tuple[str, _Part, str]]:
    for test in tests:
        if part := _part(test):
            text = _text(part, lines)
            is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
            yield "condition", part, text[len("not ") :] if is_negated else f"not ({text})"


def _constant(value: object, part: _Part, lines: list[bytes]) -> Iterator[tuple[str, _Part, str]]:
    match value:
        case bool():
            yield "constant", part, repr(not value)
        case int() | float() if value < _LIMIT:
            yield "constant", part, repr(value + 1)
        case str():
            yield from _message(part, lines)


def _message(part: _Part, lines: list[bytes]) -> Iterator[tuple[str, _Part, str]]:
    """Change a word of a text of several words."""
    text = _text(part, lines)
    words = [*_WORD.finditer(text)]
    if text.count(" ") >= _SPACES and len(words) > 1:
        for word in words:
            start, end = (part[1] + len(text[:at].encode()) for at in word.span())
            other = "altered" if word[0] != "altered" else "changed"
            yield "message", (part[0], start, end), other


def _returned(value: ast.expr, function: ast.AST | None) -> Iterator[str]:
    if not (isinstance(value, ast.Constant) and value.value is None):
        yield "None"
    match value:
        case ast.List() | ast.ListComp():
            yield "[]"
        case ast.Tuple():
            yield "()"
        case ast.Dict() | ast.DictComp():
            yield "{}"
        case ast.JoinedStr() | ast.Constant(value=str()):
            yield '""'
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        names = [argument.arg for argument in function.args.posonlyargs + function.args.args]
        yield from [name for name in names if name not in ("self", "cls")][:1]


def _part(node: ast.AST) -> _Part | None:
    """Return the line and columns of a node; `None` if it has several lines."""
    line, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if line is None or line != last:
        return None
    return line, node.col_offset, node.end_col_offset  # type: ignore[attr-defined]


def _text(part: _Part, lines: list[bytes]) -> str:
    return lines[part[0] - 1][part[1] : part[2]].decode()


def _without_strings(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)
