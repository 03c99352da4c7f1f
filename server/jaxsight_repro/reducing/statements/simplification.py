"""Simplifies expressions: calls become their arguments, transformations are peeled off."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from jaxsight_repro.reducing.checker import Checker

_WRAPPERS = frozenset((
    "jit", "checkpoint", "remat", "vmap", "grad", "value_and_grad", "partial", "pmap", "named_call",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file: the comments at its top, and the rest without comments."""

    header: str
    body: str

    @property
    def whole(self) -> str:
        """The file's text."""
        return f"{self.header}{self.body}\n"

    @property
    def tree(self) -> ast.Module:
        """A new syntax tree of the text, with the positions of `body`."""
        return ast.parse(self.body)

    @property
    def digest(self) -> str:
        """Identifies the text in every process."""
        return hashlib.sha256(self.whole.encode()).hexdigest()[:32]


Tries: TypeAlias = Iterator[Callable[[], FileText | None]]
"""What makes candidates of a text. Nodes are given by their positions in `ast.walk`."""


def simplify(text: FileText, checker: Checker[FileText]) -> FileText:
    """Return a text of which no single expression can be made simpler."""
    undecorated: Callable[[FileText], Tries] = lambda text: _shorter(text, "decorator_list")
    shorter: Callable[[FileText], Tries] = lambda text: _shorter(text, "elts", "args", "keywords")
    passes = (undecorated, _unwrapped, _inlined, _inlined_calls, shorter, _hoisted, _numbers)
    while True:
        before = text
        for tries in passes:
            text = checker.swept(text, tries)
        if text == before:
            return text


def without_data(text: FileText) -> Tries:
    """Replace arrays that a repro has as compressed data by zeros."""
    for index, node in enumerate(ast.walk(text.tree)):
        match node:
            case ast.Call(func=ast.Name("_unpack"), args=[_, dtype, shape]):
                zeros = ast.parse("jnp.zeros", mode="eval").body
                yield partial(edited, text, _replace, index, ast.Call(zeros, [shape, dtype], []))


def _unwrapped(text: FileText) -> Tries:
    """Replace `jit(f)` by `f`, and `vmap(f)(x)` by `f(x[0])`."""
    for index, node in enumerate(ast.walk(text.tree)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if _name(node.func) in _WRAPPERS:
            yield partial(edited, text, _replace, index, node.args[0])
        elif isinstance(node.func, ast.Call) and _name(node.func.func) == "vmap":
            rows: list[ast.expr] = [
                ast.Subscript(each, ast.Constant(0), ast.Load()) for each in node.args
            ]
            yield partial(edited, text, _replace, index, ast.Call(node.func.args[0], rows, []))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _inlined(text: FileText) -> Tries:
    """Write constants where they are read."""
    for index, node in enumerate(ast.walk(text.tree)):
        match node:
            case ast.Assign(targets=[ast.Name()]) if is_filled(node):
                yield partial(edited, text, _inline, index)


def _inline(tree: ast.Module, index: int) -> bool:
    assignment = _node(tree, index)
    assert isinstance(assignment, ast.Assign)
    (target,), value = assignment.targets, assignment.value
    assert isinstance(target, ast.Name)
    name = target.id

    class Reader(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return value if node.id == name and isinstance(node.ctx, ast.Load) else node

    body, position = _place(tree, assignment)
    body[position:] = [Reader().visit(each) for each in body[position + 1 :]] or (
        [] if position else [ast.Pass()]
    )
    return True


def _inlined_calls(text: FileText) -> Tries:
    """Replace a statement that calls a function of the file by the function's statements."""
    for index, node in enumerate(ast.walk(text.tree)):
        match node:
            case ast.Assign(value=ast.Call()) | ast.Expr(ast.Call()) | ast.Return(ast.Call()):
                yield partial(edited, text, _inline_call, index)


def _inline_call(tree: ast.Module, index: int) -> bool:
    statement = _node(tree, index)
    assert isinstance(statement, ast.Assign | ast.Expr | ast.Return)
    call = statement.value
    assert isinstance(call, ast.Call)
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    function = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None
    )
    if function is None or call.keywords or function.decorator_list or name in ("main", "inputs"):
        return False
    parameters = [each.arg for each in function.args.args]
    *body, last = function.body
    returns = sum(isinstance(node, ast.Return) for node in ast.walk(function))
    simple = len(parameters) == len(call.args) and returns == isinstance(last, ast.Return)
    if not simple or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    place, position = _place(tree, statement)
    if isinstance(last, ast.Return):
        statement.value = last.value or ast.Constant(None)
        last = statement
    passed = [
        ast.Assign([ast.Name(parameter, ast.Store())], argument)
        for parameter, argument in zip(parameters, call.args, strict=True)
    ]
    place[position : position + 1] = [*passed, *body, last]
    tree.body.remove(function)
    return True


def _shorter(text: FileText, *fields: str) -> Tries:
    """Remove one element of a tuple or list, one argument of a call, or one decorator."""
    for index, node in enumerate(ast.walk(text.tree)):
        for field in fields:
            elements = getattr(node, field, ())
            for position in range(len(elements) if isinstance(elements, list) else 0):
                yield partial(edited, text, _drop, index, field, position)


def _drop(tree: ast.Module, index: int, field: str, position: int) -> bool:
    """Remove an element of a list of a node."""
    del getattr(_node(tree, index), field)[position]
    return True


def _hoisted(text: FileText) -> Tries:
    """Replace an expression by one of its parts, a returned or assigned value by none."""
    for index, node in enumerate(ast.walk(text.tree)):
        if isinstance(node, (ast.Return, ast.Assign)) and node.value is not None:
            yield partial(edited, text, _replace, index, ast.Expr(node.value))
        if isinstance(node, ast.expr) and not is_constant(node):
            for part in _parts(node):
                yield partial(edited, text, _replace, index, part)


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression that may take its place."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Call():
            parts = [each for each in node.args if not isinstance(each, ast.Starred)]
            if isinstance(node.func, ast.Attribute) and not is_constant(node.func):
                parts.append(node.func.value)
            return parts
        case ast.Subscript():
            return [node.value]
        case ast.Attribute() if not isinstance(node.value, ast.Name):
            return [node.value]
        case ast.Tuple() | ast.List():
            return list(node.elts)
        case ast.IfExp():
            return [node.body, node.orelse]
    return []


def _numbers(text: FileText) -> Tries:
    """Make whole numbers smaller, wherever they occur."""
    numbers = {
        node.value
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 3
    }
    for number in sorted(numbers, reverse=True):
        for smaller in (1, 2, 3, number // 2):
            if smaller < number:
                yield partial(_renumbered, text, number, smaller)


def _renumbered(text: FileText, number: int, smaller: int) -> FileText | None:
    tree = text.tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == number:
            node.value = smaller
    body = ast.unparse(tree)
    return (
        FileText(text.header, body) if len(body) <= len(text.body) and body != text.body else None
    )


def _node(tree: ast.AST, index: int) -> ast.AST:
    """Return the node that `ast.walk` yields at a position."""
    return next(node for position, node in enumerate(ast.walk(tree)) if position == index)


def _place(tree: ast.AST, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """Return the body that a statement is in, and its position there."""
    for node, field in bodies(tree):
        body: list[ast.stmt] = getattr(node, field)
        for position, each in enumerate(body):
            if each is statement:
                return body, position
    raise LookupError(statement)


def _replace(tree: ast.AST, index: int, replacement: ast.AST) -> bool:
    """Replace a node by another, which may be of another tree of the same text."""
    node = _node(tree, index)
    for around in ast.walk(tree):
        for name, value in ast.iter_fields(around):
            if value is node:
                setattr(around, name, replacement)
                return True
            if isinstance(value, list):
                for position, each in enumerate(value):
                    if each is node:
                        value[position] = replacement
                        return True
    return False


Function = ast.FunctionDef | ast.AsyncFunctionDef
"""The definition of a function."""

_FILLED = frozenset(("zeros", "ones", "full", "key", "float", "int"))


def of_file(text: str) -> FileText:
    """Read the text of a file."""
    lines = text.splitlines(keepends=True)
    count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return written(ast.parse(text), "".join(lines[:count]))


def written(tree: ast.Module, header: str) -> FileText:
    """Write a syntax tree, with a header."""
    return FileText(header, ast.unparse(ast.fix_missing_locations(tree)))


def edited(text: FileText, edit: Callable[..., bool], *arguments: object) -> FileText | None:
    """Return the text after an edit, if that is smaller.

    `edit(tree, *arguments)` changes the syntax tree; it returns false if it cannot.
    """
    tree = text.tree
    if not edit(tree, *arguments):
        return None
    try:
        smaller = written(tree, text.header)
        compile(smaller.body, "repro", "exec")
    except (SyntaxError, ValueError):
        return None
    return smaller if smaller != text and cost(smaller) < cost(text) else None


def cost(text: FileText) -> tuple[int, int, int]:
    """Return what is minimized: statements, nodes of the syntax tree, characters."""
    return count(text), sum(1 for _ in ast.walk(text.tree)), len(text.body)


def count(text: FileText) -> int:
    """Count the statements of a text, without the values that were filled in."""
    nodes = (node for node in ast.walk(text.tree) if isinstance(node, ast.stmt))
    return sum(not is_filled(node) and not is_text(node) for node in nodes)


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_filled(node: ast.stmt) -> bool:
    """Return whether a statement assigns a constant, such as zeros."""
    return isinstance(node, ast.Assign) and is_constant(node.value)


def is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a constant, or an array of one number."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp():
            return is_constant(node.operand)
        case ast.Tuple() | ast.List():
            return all(map(is_constant, node.elts))
        case ast.Dict():
            return all(key is not None and is_constant(key) for key in node.keys) and all(
                map(is_constant, node.values)
            )
        case ast.Attribute():
            return isinstance(node.value, ast.Name) and node.value.id in ("np", "jnp", "jax")
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _FILLED and all(map(is_constant, node.args))
        case ast.Name():
            return node.id in ("bool", "int", "float", "None", "True", "False")
    return False


def bodies(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield each list of statements as its node and the name of its field, outer ones first."""
    for each in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            value = getattr(each, field, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield each, field


def functions(tree: ast.AST) -> list[Function]:
    """Return all definitions of functions."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)
