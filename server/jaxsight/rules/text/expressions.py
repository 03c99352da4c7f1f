"""Parse expressions as the user wrote them: what they call, with which arguments and operators."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator

from jaxsight.text.names import free_in
from jaxsight.text.parsing import module_in

Expression = ast.expr | ast.AugAssign
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


Place = tuple[int, int, int, int]
"""Where a node begins and ends in its statement, as `ast` counts."""


def place_of(node: ast.expr | ast.stmt) -> Place:
    """Return where a node is."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


@functools.lru_cache(maxsize=1024)  # the quoted lines of a few functions
def parsed_statement(text: str) -> ast.expr | ast.stmt | None:
    """Return the expression or the other statement that a text is."""
    match module_in(text):
        case ast.Module(body=[ast.Expr(value=expression)]):
            return expression
        case ast.Module(body=[statement]):
            return statement
        case _:
            return None


def unpacked(line: str) -> tuple[list[ast.expr], ast.expr] | None:
    """Return the targets and the value of a line such as `a, b = f(x)`; `None` for others."""
    match parsed_statement(line.strip()):
        case ast.Assign(targets=[ast.Tuple() | ast.List() as targets], value=value):
            return targets.elts, value
        case _:
            return None


def parsed(text: str) -> Expression | None:
    """Return the expression or augmented assignment that a text is."""
    node = parsed_statement(text.strip())
    return node if isinstance(node, ast.expr | ast.AugAssign) else None


def parsed_call(text: str) -> ast.Call | None:
    """Return the call that a text is."""
    node = parsed(text)
    return node if isinstance(node, ast.Call) else None


def dotted(node: ast.AST) -> str:
    """Return `jax.lax.scan` for such an expression, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def path_of(node: ast.expr | None) -> str:
    """Return a variable, attribute or element with a constant index as text; else empty."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            before = path_of(value)
            return f"{before}.{name}" if before else ""
        case ast.Subscript(value=value, slice=ast.Constant(value=index)):
            before = path_of(value)
            return f"{before}[{index!r}]" if before else ""
        case _:
            return ""


def name_of(call: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def called(text: str) -> str:
    """Return the last part of the name of what a text calls, empty where it is no call."""
    node = parsed(text)
    return name_of(node) if isinstance(node, ast.Call) else ""


def operands_of(node: ast.AST | None) -> list[ast.expr]:
    """Return the operands of an operator, or the positional arguments of a call, in order."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(args=given):
            return given
        case ast.Expr(value=value):
            return operands_of(value)
        case _:
            return []


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """Return the argument that is given by one of these names."""
    return next((given.value for given in call.keywords if given.arg in names), None)


def call_operands(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, those that are given by name last."""
    return [*call.args, *(word.value for word in call.keywords)]


def argument_of(call: ast.Call, at: int, *names: str) -> ast.expr | None:
    """Return the argument that is given by one of these names, else at a position."""
    return keyword(call, *names) or (call.args[at] if at < len(call.args) else None)


def arguments(call: ast.Call) -> str:
    """Return the text between the brackets of a call."""
    named = [f"{key.arg}={ast.unparse(key.value)}" for key in call.keywords if key.arg]
    return ", ".join([*map(ast.unparse, call.args), *named])


def bracketed(text: str) -> str:
    """Return a text as an operand of a product."""
    node = parsed(text)
    return f"({text})" if isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp) else text


def negated(text: str) -> str:
    """Return the text of the negative of an expression."""
    node = parsed(text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ast.unparse(node.operand)
    return f"-{bracketed(text)}"


def strings_in(tree: ast.AST) -> Iterator[str]:
    """Yield the strings in some syntax."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                yield text


def integer(node: ast.expr | None) -> int | None:
    """Return the value of a whole number, as written."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Tuple(elts=[element]):
            return integer(element)
        case _:
            return None


def same(first: ast.AST, second: ast.AST) -> bool:
    """Return whether two expressions have the same syntax tree."""
    return ast.dump(first) == ast.dump(second)


def free_names(node: ast.expr) -> set[str]:
    """Return the names that an expression reads and does not bind, without builtins."""
    return set(free_in(ast.unparse(node))) - set(dir(builtins))


def reads_of(name: str, *trees: ast.AST) -> list[ast.Name]:
    """Return where some syntax reads a name, in the order of the text."""
    return [node for node in _names(name, *trees) if isinstance(node.ctx, ast.Load)]


def stores_of(name: str, *trees: ast.AST) -> list[ast.Name]:
    """Return where some syntax binds a name, in the order of the text."""
    return [node for node in _names(name, *trees) if isinstance(node.ctx, ast.Store)]


def _names(name: str, *trees: ast.AST) -> list[ast.Name]:
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    named = [node for node in nodes if node.id == name]
    return sorted(named, key=lambda node: (node.lineno, node.col_offset))


def only_value(name: str, tree: ast.AST) -> ast.expr | None:
    """Return what some syntax assigns to a name, if it binds it once."""
    stored = stores_of(name, tree)
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    values = [node.value for node in assigned if node.targets == stored]
    return values[0] if len(stored) == 1 and values else None
