"""Small functions on syntax trees that several modules use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement that is neither a function nor a class."""
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield statement.body
            yield statement.orelse
        case ast.With() | ast.AsyncWith():
            yield statement.body
        case ast.Try() | ast.TryStar():
            yield statement.body
            for handler in statement.handlers:
                yield handler.body
            yield statement.orelse
            yield statement.finalbody
        case ast.Match():
            for case in statement.cases:
                yield case.body


def statements_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a function's body and inner blocks, but not of inner functions."""
    # An explicit stack: hundreds of `elif` are as many levels of the tree.
    stack = list(body)
    while stack:
        statement = stack.pop()
        yield statement
        for block in blocks_of(statement):
            stack.extend(block)


def targets_of(statement: ast.stmt) -> list[ast.expr]:
    """Return the targets of an assignment, a `for` or a `with`."""
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With(items=contexts) | ast.AsyncWith(items=contexts):
            return [
                context.optional_vars for context in contexts if context.optional_vars is not None
            ]
    return []


def dotted_name(node: ast.expr) -> str:
    """Return `a.b.c` for an attribute chain, without its last subscripts; empty for other nodes."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Attribute(value=inner, attr=attr):
                parts.append(attr)
                node = inner
            case ast.Subscript(value=inner) if not parts:
                node = inner
            case ast.Name(id=name):
                return ".".join((name, *reversed(parts)))
            case _:
                return ""


def first_name(name: str) -> str:
    """Return the first part of a dotted name."""
    return name.partition(".")[0]


def last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def annotations_of(statement: ast.stmt) -> Iterator[ast.expr]:
    match statement:
        case (
            ast.FunctionDef(args=args, returns=returns)
            | ast.AsyncFunctionDef(args=args, returns=returns)
        ):
            every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
            for argument in every:
                if argument is not None and argument.annotation is not None:
                    yield argument.annotation
            if returns is not None:
                yield returns
        case ast.AnnAssign(annotation=annotation):
            yield annotation


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that do not belong to a statement inside it."""
    stack: list[ast.AST] = [
        n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)
    ]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt))


def is_main_guard(test: ast.expr) -> bool:
    """Return whether a test is `__name__ == "__main__"`, alone or with more conditions."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            match left, right:
                case (ast.Name(id="__name__"), ast.Constant(value="__main__")) | (
                    ast.Constant(value="__main__"),
                    ast.Name(id="__name__"),
                ):
                    return True
        case ast.BoolOp(op=ast.And(), values=values):
            return any(is_main_guard(value) for value in values)
    return False


def is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


_SHORT = 16
"""Iterations of a loop that does not count as long, a choice: such loops set up layers or devices;
with more, training for a few epochs would run."""
_ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "open", "reversed", "zip"})


def is_short(iterated: ast.expr) -> bool:
    """Return whether a loop over these values has few iterations."""
    match iterated:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return len(parts) <= _SHORT
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(stop))]):
            return stop <= _SHORT
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return is_short(inner)
    return False


def is_iterator(value: ast.expr) -> bool:
    """Return whether a value is an iterator, or contains one."""
    match value:
        case ast.GeneratorExp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _ITERATORS
        case ast.Call(func=function):
            return dotted_name(function).partition(".")[0] == "itertools"
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(map(is_iterator, parts))
        case ast.IfExp(body=body, orelse=orelse):
            return is_iterator(body) or is_iterator(orelse)
    return False


def is_at(value: ast.expr) -> bool:
    """Return whether a value is `x.at[…]`."""
    match value:
        case ast.Subscript(value=ast.Attribute(attr="at")):
            return True
    return False


def root_name(node: ast.expr) -> str:
    """Return the name in which an assignment to this target changes something; empty if unknown."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
