"""What the text of an expression says about its pairs."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from jaxsight.rules.jx420_outer_broadcast.pairs import Join
from jaxsight.rules.text.expressions import parsed_call, parsed_statement

_ADDS_AXIS = re.compile(r"\[[^\[\]]*\b(?:None|newaxis)\b[^\[\]]*\]|expand_dims\(|outer\(|grid\(")
"""What says anywhere in an expression that all pairs are meant."""
_SHAPES = frozenset({"reshape", "transpose", "atleast_2d", "swapaxes", "column_stack", "T", "mT"})
"""What says so of a column that it makes."""
_OF_PAIRS = re.compile(
    r"(?:^|_)(?:pair\w*|outer|kernel|gram|cross(?!_?entropy)|matrix|dists?|distances?|rbf|table|"
    r"grid|mesh|affinity|similarity|cdf|hist\w*)(?:_|$)"
)
"""What the name of a function says that computes all pairs."""
_LONGEST = 40
"""Characters of an expression that the help repeats."""


def is_explicit(text: str, join: Join) -> bool:
    """Whether the expression itself gives an operand the shape of a column."""
    column, node = written_column(text, join), parsed_call(text)
    shaped = [column] if column is not None else operands_of(node) if node is not None else []
    return _ADDS_AXIS.search(text) is not None or any(map(_is_shaped, shaped))


def _is_shaped(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _SHAPES
        case ast.UnaryOp(operand=operand):
            return _is_shaped(operand)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            keeps = any(keyword.arg == "keepdims" for keyword in keywords)
            return name in _SHAPES or (keeps and not name.startswith("arg"))
        case _:
            return False


def operands_of(node: ast.AST | None) -> Sequence[ast.expr]:
    """Return the operands of an operator, or the arguments of a call."""
    match node:
        case (
            ast.BinOp(left=left, right=right)
            | ast.Compare(left=left, comparators=[right])
            | ast.AugAssign(target=left, value=right)
        ):
            return left, right
        case ast.Call(args=given):
            return given
        case ast.Expr(value=value):
            return operands_of(value)
        case _:
            return ()


def written_column(text: str, join: Join) -> ast.expr | None:
    """Return the column as it is written; `None` where that is unclear."""
    node = parsed_statement(text)
    operands = operands_of(node) if not isinstance(node, ast.Call) else ()
    return operands[0 if join.column_first else 1] if operands else None


def without_axis(name: str) -> str:
    """Return the column without its trailing axis as code, for an expression that is short."""
    if not name or len(name) > _LONGEST:
        return ".squeeze(-1)"
    is_simple = isinstance(
        parsed_statement(name), ast.Name | ast.Attribute | ast.Call | ast.Subscript
    )
    return f"{name}.squeeze(-1)" if is_simple else f"({name}).squeeze(-1)"


def is_named(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression has a name of this kind, other than those of functions it calls."""
    node = parsed_statement(text)
    if node is None:
        return False
    called = {part.func for part in ast.walk(node) if isinstance(part, ast.Call)}
    names = [
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute) and part not in called
    ]
    names += [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return any(pattern.match(name) for name in names)


def computes_pairs(node: ast.AST) -> bool:
    """Whether a node is a function whose name says that all pairs are meant."""
    return isinstance(node, ast.FunctionDef) and _OF_PAIRS.search(node.name) is not None
