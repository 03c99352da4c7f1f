"""Read arguments, numbers and names off syntax trees."""

from __future__ import annotations

import ast
import builtins

from jaxsight.text.names import free_in


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
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))
    reads = [node for node in nodes if node.id == name and isinstance(node.ctx, ast.Load)]
    return sorted(reads, key=lambda node: (node.lineno, node.col_offset))
