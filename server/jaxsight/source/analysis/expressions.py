"""Properties of single expressions."""

from __future__ import annotations

import ast

from jaxsight.source.analysis.syntax_trees import dotted_name

_SHORT = 16
"""Maximum number of iterations of a loop that does not count as long."""
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


def calls_a_class(pattern: ast.pattern) -> bool:
    """Return whether a pattern of `match` may call methods of a class."""
    return any(isinstance(node, ast.MatchClass) for node in ast.walk(pattern))


def opens_to_write(call: ast.Call) -> bool:
    """Return whether a call of `open` may write the file."""
    modes = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
    for mode in modes:
        match mode:
            case ast.Constant(value=str(letters)):
                return not set(letters).isdisjoint("wax+")
        return True
    return False


def root_name(node: ast.expr) -> str:
    """Return the name in which an assignment to this target changes something; empty if unknown."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
