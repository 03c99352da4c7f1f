"""How a statement that changes an array in place is written with `.at[…]`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass

Write = Callable[[ast.expr], str]
"""Gives the source of an expression."""

_METHODS = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
_CONDITIONS = frozenset(
    {
        "isnan", "isinf", "isfinite", "isclose", "isin", "logical_and", "logical_or", "logical_not",
        "logical_xor", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal",
    }
)  # fmt: skip
"""Functions that return a mask."""
_UPDATES = frozenset({*_METHODS.values(), "set", "mul", "min", "max", "apply"})
"""The methods of `.at[…]` that return an updated array."""
_SIMPLE = (
    ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.ListComp,
)  # fmt: skip
"""Expressions that an operator may follow or precede."""


@dataclass(frozen=True, slots=True)
class ItemTarget:
    """`x[i]`, or `x[i][j]` as one place in `x`."""

    array: ast.expr
    indices: tuple[ast.expr, ...]

    def index(self, write: Write) -> str:
        """Return what stands between the brackets of `.at[…]`."""
        if len(self.indices) == 1 and len(_parts(self.indices[0])) < 2:
            return write(self.indices[0])
        parts = (part for index in self.indices for part in _parts(index))
        return ", ".join(map(write, parts))


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def item_target(target: ast.AST | None, *, merged: bool) -> ItemTarget | None:
    """Return the place that a target assigns to.

    Args:
        target: what stands left of the `=`.
        merged: whether `x[i][j]` is a place in `x`; otherwise in `x[i]`, for a list of arrays.
    """
    if not isinstance(target, ast.Subscript) or _is_key(target.slice):
        return None
    array: ast.expr = target.value
    indices = [target.slice]
    if isinstance(array, ast.Attribute) and array.attr == "at":
        array = array.value
    while merged and isinstance(array, ast.Subscript) and not _is_key(array.slice):
        indices.insert(0, array.slice)
        array = array.value
    root = array
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return ItemTarget(array, tuple(indices)) if isinstance(root, ast.Name) else None


def target_of(statement: ast.AST) -> ast.expr | None:
    """Return what a statement assigns to; the first of several."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=[target, *_]) | ast.List(elts=[target, *_]), *_]):
            return target
        case ast.Assign(targets=[target, *_]) | ast.AugAssign(target=target):
            return target
        case _:
            return None


def _is_key(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and isinstance(index.value, str)


def updated(statement: ast.AST, write: Write, *, merged: bool = True) -> str | None:
    """Return `x = x.at[i].set(y)` for `x[i] = y`, `x[i] += y` and their like; else `None`."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)], value=value):
            if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(targets):
                return None
            return _all_set(list(zip(targets, value.elts, strict=True)), write, merged)
        case ast.Assign(targets=targets, value=value):
            if len(targets) > 1 and not isinstance(value, ast.Name | ast.Constant):
                return None
            return _all_set([(target, value) for target in targets], write, merged)
        case ast.AugAssign(target=target, op=op, value=value):
            element = item_target(target, merged=merged)
            if element is None:
                return None
            array, index = write(element.array), element.index(write)
            if type(op) in _METHODS:
                update = f"{_METHODS[type(op)]}({_argument(value, write)})"
            else:
                update = f"set({array}[{index}] {_operation(op, value, write)})"
            return f"{array} = {array}.at[{index}].{update}"
        case _:
            return None


def masked(statement: ast.AST, write: Write, jnp: str) -> str | None:
    """Return `x = jnp.where(mask, y, x)` for `x[mask] = y` and `x[mask] += y`; else `None`.

    In `y`, what is selected by the same mask is taken whole.
    """
    op: ast.operator | None = None
    match statement:
        case ast.Assign(targets=[target], value=value):
            pass
        case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
            pass
        case _:
            return None
    element = item_target(target, merged=False)
    if element is None or len(element.indices) != 1:
        return None
    array, mask = write(element.array), write(element.indices[0])
    wanted = _Whole(element.indices[0])
    changed = wanted.visit(copy.deepcopy(value))
    value, write_value = (changed, ast.unparse) if wanted.count else (value, write)
    new = _argument(value, write_value)
    if op is not None:
        new = f"{array} {_operation(op, value, write_value)}"
    return f"{array} = {jnp}.where({mask}, {new}, {array})"


class _Whole(ast.NodeTransformer):
    """Takes `y` for `y[mask]`."""

    def __init__(self, mask: ast.expr) -> None:
        self._mask = ast.dump(mask)
        self.count = 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if ast.dump(node.slice) != self._mask:
            return node
        self.count += 1
        return node.value


def is_mask(index: ast.expr) -> bool:
    """Whether an index is a condition by its syntax: `x < 0`, `~mask`, `(x > 0) & ok`."""
    match index:
        case ast.Compare():
            return True
        case ast.UnaryOp(op=ast.Invert()):
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return is_mask(left) or is_mask(right)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _CONDITIONS
        case ast.Name(id=name):
            return "mask" in name.lower()
        case _:
            return False


def _operation(op: ast.operator, value: ast.expr, write: Write) -> str:
    """Return an operator with its second operand: `// 2`."""
    operand = write(value) if isinstance(value, _SIMPLE) else f"({write(value)})"
    symbol = ast.unparse(ast.BinOp(ast.Name("x"), op, ast.Name("y")))[1:-1].strip()
    return f"{symbol} {operand}"


def _all_set(pairs: list[tuple[ast.expr, ast.expr]], write: Write, merged: bool) -> str | None:
    """Return one assignment that sets several places in one array."""
    places = [(item_target(target, merged=merged), value) for target, value in pairs]
    arrays = {write(element.array) for element, _ in places if element is not None}
    if len(arrays) != 1:
        return None
    (array,), sets = arrays, []
    for element, value in places:
        if element is None or isinstance(value, ast.Starred):
            return None
        sets.append(f".at[{element.index(write)}].set({_argument(value, write)})")
    return f"{array} = {array}{''.join(sets)}"


def _argument(value: ast.expr, write: Write) -> str:
    text = write(value)
    bare = isinstance(value, ast.Tuple) and not text.startswith("(")
    bare = bare or isinstance(value, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.GeneratorExp)
    return f"({text})" if bare and not text.startswith("(") else text


def discarded(statement: ast.stmt) -> ast.Call | None:
    """Return the update of a statement that is nothing but `x.at[i].set(y)`."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Attribute(attr="at")), attr=attribute
                )
            ) as call
        ) if attribute in _UPDATES:
            return call
        case _:
            return None


def updated_array(call: ast.Call) -> ast.expr:
    """Return `x` of `x.at[i].set(y)`, of several updates in a row too."""
    node: ast.expr = call
    while True:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=array, attr="at")))
            ):
                node = array
            case _:
                return node
