"""JX310: a jaxtyping annotation disagrees with the trace."""

# Longer than most rules: annotations of jaxtyping are parsed and compared axis by axis.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.meshes.divided import ArrayType, array_type
from jaxsight.rules.rule import AnnotatedFunction, NodeViolation, Rule
from jaxsight.rules.text.statements import own_statements
from jaxsight.rules.wording import MOST
from jaxsight.text.inert import clause
from jaxsight.text.parsing import expression_in

# jaxtyping annotations as they are checked: a kind of dtypes, and axes.

_FLOAT = r"b?f\d+\w*"
_INT, _UINT, _COMPLEX = r"i\d+", r"u\d+", r"c\d+"
_KINDS = {
    "Float": _FLOAT,
    "Int": _INT,
    "UInt": _UINT,
    "Integer": f"{_INT}|{_UINT}",
    "Real": f"{_FLOAT}|{_INT}|{_UINT}",
    "Num": f"{_FLOAT}|{_INT}|{_UINT}|{_COMPLEX}",
    "Inexact": f"{_FLOAT}|{_COMPLEX}",
    "Complex": _COMPLEX,
    "Bool": "bool",
    "BFloat16": "bf16",
    "Shaped": r"\w+",
    **{f"Float{n}": f"f{n}" for n in (16, 32, 64)},
    **{f"Int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"UInt{n}": f"u{n}" for n in (8, 16, 32, 64)},
    **{f"Complex{n}": f"c{n}" for n in (64, 128)},
}
"""The dtypes of jaxtyping's names, as patterns of the names in jaxprs."""

_ARRAYS = frozenset({"Array", "ArrayLike", "ndarray"})
_TUPLES = frozenset({"tuple", "Tuple"})
_MODIFIERS = "#*"
_DOCUMENTED = re.compile(r"[^\W\d]\w*=(?=.)")


@dataclass(frozen=True, slots=True)
class AnnotatedAxis:
    """An axis of an annotation; `text` is a name, a number or an expression, empty for any size."""

    text: str
    is_variadic: bool = False
    broadcasts: bool = False


Annotation = tuple[str, tuple[AnnotatedAxis, ...]]
"""`Float[Array, "B D"]`: `Float`, and the axes."""


def annotation_of(node: ast.expr | None) -> Annotation | None:
    """Return what an annotation says about an array; `None` if it has another form."""
    match node:
        case ast.Constant(value=str(quoted)):
            return annotation_of(expression_in(quoted))
        case ast.Subscript(
            value=ast.Name(id=kind) | ast.Attribute(attr=kind),
            slice=ast.Tuple(
                elts=[ast.Name(id=array) | ast.Attribute(attr=array), ast.Constant(value=str(axes))]
            ),
        ) if kind in _KINDS and array in _ARRAYS:
            read = _axes(axes)
            return (kind, read) if read is not None else None
        case _:
            return None


def items_of(node: ast.expr | None) -> tuple[ast.expr, ...] | None:
    """Return the items of `tuple[A, B]`; `None` for other annotations."""
    match node:
        case ast.Subscript(
            value=ast.Name(id=name) | ast.Attribute(attr=name), slice=ast.Tuple(elts=items)
        ) if name in _TUPLES and not any(
            isinstance(item, ast.Constant) and item.value is ... for item in items
        ):
            return tuple(items)
        case _:
            return None


def _axes(text: str) -> tuple[AnnotatedAxis, ...] | None:
    axes: list[AnnotatedAxis] = []
    for word in text.split():
        if word == "...":
            axes.append(AnnotatedAxis("", is_variadic=True))
            continue
        name = word.lstrip(_MODIFIERS)
        modifiers = word[: len(word) - len(name)]
        name = _DOCUMENTED.sub("", name)
        if not name or name.startswith("?") or "{" in name:
            return None
        name = "" if name.startswith("_") else name
        axes.append(AnnotatedAxis(name, "*" in modifiers, "#" in modifiers))
    return tuple(axes) if sum(axis.is_variadic for axis in axes) <= 1 else None


def mismatch(
    annotation: Annotation, traced: ArrayType, sizes: dict[str, int | tuple[int, ...]]
) -> str:
    """Return how an array differs from its annotation; empty if it does not, or in doubt.

    Args:
        annotation: the annotation.
        traced: the array.
        sizes: the sizes of names that are known; names that the annotation adds are added.
    """
    kind, axes, shape = annotation[0], list(annotation[1]), list(traced.shape)
    if re.fullmatch(_KINDS[kind], traced.dtype) is None:
        return "dtype"
    at = next((i for i, axis in enumerate(axes) if axis.is_variadic), None)
    count = len(shape) - len(axes) + 1
    if count < 0 or (at is None and count != 1):
        return "rank"
    if at is not None:
        axis, inner = axes.pop(at), tuple(shape[at : at + count])
        del shape[at : at + count]
        if axis.text and not axis.broadcasts and sizes.setdefault(axis.text, inner) != inner:
            return "shape"
    new: dict[str, int] = {}
    for axis, size in zip(axes, shape, strict=True):
        if axis.text == "" or (axis.broadcasts and size == 1):
            continue
        expected = _value(axis.text, {**sizes, **new})
        if expected is None:
            if axis.text.isidentifier() and not axis.broadcasts:
                new[axis.text] = size
        elif expected != size:
            return "shape"
    sizes |= new
    return ""


def _value(text: str, sizes: Mapping[str, int | tuple[int, ...]]) -> int | None:
    """Return the size that a number or a name says; `None` of expressions and unknown names."""
    size = int(text) if text.isdecimal() else sizes.get(text)
    return size if isinstance(size, int) else None


RULE = Rule(
    __name__, "A jaxtyping annotation disagrees with the traced shape or dtype.", severity="warning"
)

_LONGEST = (MOST - len("annotated ``, traced ``")) // 2
"""Characters of each of the two types in a message: a usual one has fewer."""


@RULE.finds_in_annotations
def find(function: AnnotatedFunction) -> Iterator[NodeViolation]:
    """Yield the annotations of a traced function's locals and results that do not hold.

    Names have the sizes that the annotations of parameters give them in this trace, then those of
    the example inputs. Parameters that disagree leave everything in doubt.
    """
    known: dict[str, int | tuple[int, ...]] = {}
    definition, outputs = function.definition, function.outputs
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        annotation = annotation_of(argument.annotation)
        traced = array_type(function.parameters.get(argument.arg, ""))
        if annotation is not None and traced is not None and mismatch(annotation, traced, known):
            return
    known = {**function.sizes, **known}
    checked = [
        (statement.annotation, function.seen(statement.target))
        for statement in own_statements(definition.body)
        if isinstance(statement, ast.AnnAssign)
    ]
    items = items_of(definition.returns)
    if items is None and definition.returns is not None:
        items = (definition.returns,)
    if items is not None and len(items) == len(outputs):
        checked += zip(items, outputs, strict=True)
    for node, text in checked:
        annotation, traced = annotation_of(node), array_type(text)
        if annotation is None or traced is None:
            continue
        if kind := mismatch(annotation, traced, known):
            named, shown = function.named(text), ast.unparse(node).replace("'", '"')
            if isinstance(node, ast.Constant):
                shown = str(node.value)
            yield NodeViolation(
                node,
                f"annotated `{clause(shown, _LONGEST)}`, traced `{clause(named, _LONGEST)}`",
                help="correct the annotation, or the code",
                notes=(
                    f"the {kind} differs",
                    *((f"the traced type is `{text}`",) if named != text else ()),
                ),
            )
