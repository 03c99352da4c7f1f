"""Examples from jaxtyping annotations.

`Float[Array, "b d"]` with sizes for `b` and `d` describes an array. Axes of any rank (`...`,
`*batch`) become no axis; an axis of any size (`_`, `_name`) has size 1. An annotation of another
form gives no example and no problem.
"""

from __future__ import annotations

import ast
import re

from jaxsight.examples.notation.shapes import read_size
from jaxsight.examples.notation.tokens import ChunkText, TokenReader
from jaxsight.examples.notation.values import DTYPES, ArrayNode, Key, Node, Number, Size
from jaxsight.examples.problems import Malformed
from jaxsight.source.analysis.syntax_trees import last_name
from jaxsight.text.parsing import expression_in

_KINDS = {
    "Float": "float32",
    "Inexact": "float32",
    "Real": "float32",
    "Num": "float32",
    "Shaped": "float32",
    "Int": "int32",
    "Integer": "int32",
    "UInt": "uint32",
    "Complex": "complex64",
    "BFloat16": "bfloat16",
    # As `UInt8` and `Float8e4m3fn`.
    **{
        dtype.capitalize().replace("Uint", "UInt").replace("_", ""): dtype
        for dtype in DTYPES
        if dtype not in ("bfloat16", "int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")
    },
}
"""The dtype of an example by jaxtyping's name."""

_MODIFIERS = "#*?"
_DOCUMENTED = re.compile(r"[^\W\d]\w*=(?=.)")
"""The name in `rows=4`, which only documents the axis."""


def example_of(annotation: str | None) -> Node | None:
    """Return the example that an annotation describes, its sizes by name; `None` without one."""
    if annotation is None:
        return None
    tree = expression_in(annotation)
    return _example(tree) if tree is not None else None


def _example(tree: ast.expr) -> Node | None:
    match tree:
        case ast.Constant(value=str(quoted)):
            return example_of(quoted)
        case ast.Name(id="PRNGKeyArray") | ast.Attribute(attr="PRNGKeyArray"):
            return Key("fry", ())
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _example(left) or _example(right)
        case ast.Subscript(
            value=value, slice=ast.Tuple(elts=[array, ast.Constant(value=str(axes))])
        ):
            shape = shape_of(axes)
            name = last_name(value)
            if shape is None or not name:
                return None
            inner = _example(array)
            if isinstance(inner, ArrayNode):
                shape += inner.shape
            if name == "Key":
                return Key("fry", shape)
            return ArrayNode(_KINDS[name], shape) if name in _KINDS else None
        case ast.Subscript(value=value, slice=inside) if last_name(value) in (
            "Optional",
            "Union",
            "Annotated",
        ):
            options = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return next((node for option in options if (node := _example(option))), None)
    return None


def shape_of(axes: str) -> tuple[Size, ...] | None:
    """Return jaxtyping's axes as sizes; `None` if one is not a size (`{n}` of an f-string)."""
    shape: list[Size] = []
    for axis in axes.split():
        name = axis.lstrip(_MODIFIERS)
        if name == "..." or "*" in axis[: len(axis) - len(name)]:
            continue
        name = _DOCUMENTED.sub("", name)
        if name.startswith("_"):
            shape.append(Number(1))
            continue
        reader = TokenReader(ChunkText(name))
        try:
            size = read_size(reader)
            reader.finish()
        except Malformed:
            return None
        shape.append(size)
    return tuple(shape)
