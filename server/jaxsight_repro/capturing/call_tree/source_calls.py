"""The call that a frame makes, read from its source.

Calls of jitted functions fail in C++ before any function of JAX has a frame, if a static argument
cannot be hashed. Only names, attributes, literals and calls of functions of JAX and NumPy are
evaluated: nothing of the user's runs again.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import textwrap
from types import FrameType
from typing import NamedTuple

from jaxsight.text.parsing import expression_in


class SourceCall(NamedTuple):
    """A function and the arguments that it was called with."""

    function: object
    args: tuple[object, ...]
    kwargs: dict[str, object]


class _Unknown(Exception):
    """A part of an expression cannot be evaluated without running the user's code."""


def call_at(frame: FrameType, instruction: int) -> SourceCall | None:
    """Return the call at an instruction of a frame, or None if it cannot be read."""
    node = _node_at(frame, instruction)
    try:
        return _call(node, frame) if isinstance(node, ast.Call) else None
    except _Unknown:
        return None


def operands_at(frame: FrameType, instruction: int) -> tuple[str, object, object] | None:
    """Return the operator at an instruction of a frame with its operands, if they can be read."""
    node = _node_at(frame, instruction)
    symbol = _OPERATORS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if symbol is None:
        return None
    assert isinstance(node, ast.BinOp)
    try:
        return symbol, _value(node.left, frame), _value(node.right, frame)
    except _Unknown:
        return None


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip


def argument_at(frame: FrameType, instruction: int, position: int, name: str) -> object:
    """Return one argument of the call at an instruction of a frame, or None if it cannot be read.

    Args:
        position: its position among the parameters of the function.
        name: its name, if it is passed by it.
    """
    node = _node_at(frame, instruction)
    if not isinstance(node, ast.Call):
        return None
    named = [keyword.value for keyword in node.keywords if keyword.arg == name]
    positional = [] if any(isinstance(arg, ast.Starred) for arg in node.args) else node.args
    try:
        for argument in (*positional[position : position + 1], *named):
            return _value(argument, frame)
    except _Unknown:
        pass
    return None


def _node_at(frame: FrameType, instruction: int) -> ast.expr | None:
    text = _text_at(frame, instruction)
    return expression_in(textwrap.dedent(text)) if text is not None else None


def _text_at(frame: FrameType, instruction: int) -> str | None:
    """Return the source of the expression at an instruction."""
    positions = list(frame.f_code.co_positions())
    if not 0 <= instruction // 2 < len(positions):
        return None
    line, last, column, end = positions[instruction // 2]
    if line is None or last is None or column is None or end is None:
        return None
    file = frame.f_code.co_filename
    lines = [linecache.getline(file, number, frame.f_globals) for number in range(line, last + 1)]
    if not lines or not all(lines):
        return None
    cut = [text.encode() for text in lines]
    cut[-1] = cut[-1][:end]
    cut[0] = cut[0][column:]
    return b"".join(cut).decode(errors="replace")


def _call(node: ast.Call, frame: FrameType) -> SourceCall:
    if any(keyword.arg is None for keyword in node.keywords):
        raise _Unknown
    return SourceCall(
        _value(node.func, frame),
        tuple(_value(arg, frame) for arg in node.args),
        {str(keyword.arg): _value(keyword.value, frame) for keyword in node.keywords},
    )


def _value(node: ast.expr, frame: FrameType) -> object:
    match node:
        case ast.Constant(constant):
            return constant
        case ast.Name(name):
            for names in (frame.f_locals, frame.f_globals, vars(builtins)):
                if name in names:
                    return names[name]
        case ast.Attribute(inside, name):
            own = _value(inside, frame)
            if name in getattr(own, "__dict__", {}) or hasattr(type(own), name):
                return getattr(own, name)
        case ast.List(items):
            return [_value(item, frame) for item in items]
        case ast.Tuple(items):
            return tuple(_value(item, frame) for item in items)
        case ast.Dict(keys, items) if all(keys):
            pairs = zip(keys, items, strict=True)
            return {_value(key, frame): _value(item, frame) for key, item in pairs if key}
        case ast.Call():
            function, args, kwargs = _call(node, frame)
            module = str(getattr(function, "__module__", "")).partition(".")[0]
            if module in ("jax", "numpy", "jaxlib") and callable(function):
                return function(*args, **kwargs)
        case _:
            pass
    raise _Unknown
