"""The ordered table of evidence: the first row whose condition holds decides what a parameter is.

The uses in the body come first, then the annotation, the docstring, and the name. Constructor
arguments, fields and the items of tuples are decided by the same rows. An error of a trace changes
the clues (`errors`), and the rows decide again.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxsight.examples.notation.meshes import NAME as MESH
from jaxsight.examples.proposals import names
from jaxsight.examples.proposals.clues import Clues
from jaxsight.examples.proposals.kinds import PLAIN, Kind, What

Row = tuple[Callable[[Clues], object], Kind | What | Callable[[Clues], What]]


def kind_of(clues: Clues) -> What:
    """Return what a parameter is."""
    for holds, kind in ROWS:
        if holds(clues):
            if isinstance(kind, Kind):
                return What(kind)
            return kind if isinstance(kind, What) else kind(clues)
    return What(Kind.ARRAY)


def _annotated(clues: Clues) -> What:
    return clues.annotated


def _of_class(clues: Clues) -> What:
    return What(Kind.OBJECT, clues.record or clues.like)


_UNUSED = (Kind.UNKNOWN, Kind.TREE)
_SAID = PLAIN | {
    Kind.FUNCTION,
    Kind.FUNCTIONS,
    Kind.DTYPE,
    Kind.SHAPE,
    Kind.LIST,
    Kind.KEY,
    Kind.SHAPE_AND_DTYPE,
}
"""Annotations that names do not change."""

ROWS: tuple[Row, ...] = (
    # An attention's key is an array.
    (
        lambda c: (
            c.name in ("key", "keys")
            and not c.is_argument
            and any(map(names.QUERY.fullmatch, c.around.parameters))
        ),
        Kind.ARRAY,
    ),
    # Arguments that a constructor may do without.
    (lambda c: c.is_argument and c.named(names.RNGS), Kind.RNGS),
    (lambda c: c.is_argument and c.named(names.KEY) and not c.uses.array, Kind.KEY),
    (lambda c: c.is_argument and c.is_optional and not c.is_used, Kind.NONE),
    # Uses in the body.
    (lambda c: c.is_annotated(Kind.SIZES), Kind.SIZES),
    (lambda c: c.named(names.WIDTHS) and not c.annotated and not c.uses.number, Kind.WIDTHS),
    (
        lambda c: c.named(names.MAPPED_AXES) and not c.is_array and c.annotation != "int",
        What(Kind.LITERAL, "0"),
    ),
    (lambda c: c.named(names.AXES) and not c.is_array and c.annotation != "int", Kind.AXES),
    (lambda c: c.is_annotated(*_UNUSED) and not c.uses.array and c.record, _of_class),
    (lambda c: c.is_annotated(Kind.OBJECT) and c.uses.called is not None, _annotated),
    (lambda c: c.is_program, Kind.PROGRAM),
    (lambda c: c.uses.called is not None and c.module, lambda c: What(Kind.OBJECT, c.module)),
    (lambda c: c.uses.called is not None, Kind.FUNCTION),
    (lambda c: c.is_annotated(Kind.FUNCTION) and not c.uses.array, Kind.FUNCTION),
    (
        lambda c: c.uses.choices and not c.uses.array,
        lambda c: What(Kind.LITERAL, c.uses.choices[0]),
    ),
    (lambda c: c.uses.random and not c.is_annotated(Kind.INTEGER), Kind.KEY),
    (lambda c: c.uses.dtype and not c.uses.array, Kind.DTYPE),
    (lambda c: c.uses.shape_like and not c.uses.array and c.uses.number, Kind.SIZE),
    (lambda c: c.uses.shape_like and not c.uses.array, Kind.SHAPE),
    (lambda c: c.uses.item and c.uses.item.parts and not c.uses.array, Kind.LIST),
    (lambda c: c.uses.parts and not c.uses.array and not c.uses.instance, Kind.LIST),
    (lambda c: c.uses.keys and not c.uses.shape.find().least, Kind.DICT),
    (lambda c: c.uses.tree and not c.uses.array and c.is_annotated(Kind.OBJECT), _annotated),
    (lambda c: c.uses.tree and not c.uses.array, Kind.TREE),
    (lambda c: c.uses.axis and not c.has_axes, Kind.AXIS),
    (lambda c: c.uses.static and not c.has_axes, Kind.SIZE),
    # Parameters of JAX's own functions.
    (lambda c: c.named(names.DIMENSION_NUMBERS), What(Kind.LITERAL, "(((1,), (0,)), ((), ()))")),
    (lambda c: c.named(names.UNSET) and c.annotated.kind not in PLAIN, Kind.NONE),
    # Static arguments.
    (lambda c: c.static and c.annotated.kind in PLAIN, _annotated),
    (lambda c: c.static and c.named(names.AXIS), Kind.AXIS),
    (lambda c: c.static and (c.named(names.SHAPE) or c.named(names.COUNTS)), Kind.SHAPE),
    (lambda c: c.static and c.named(names.DTYPE), Kind.DTYPE),
    (lambda c: c.static and c.named(names.FUNCTION), Kind.FUNCTION),
    (lambda c: c.static and (c.named(names.BOOLEAN) or c.uses.boolean), Kind.FLAG),
    (lambda c: c.static and c.named(names.STRING), Kind.STRING),
    (lambda c: c.static and c.is_annotated(Kind.OBJECT), _annotated),
    (lambda c: c.static, Kind.SIZE),
    # The annotation.
    (
        lambda c: c.is_annotated(Kind.INTEGER) and c.named(names.AXIS) and not c.uses.number,
        Kind.AXIS,
    ),
    (lambda c: c.annotated.kind in _SAID, _annotated),
    # The docstring.
    (lambda c: c.named(names.MODEL_ARGUMENTS) and not c.annotated, What(Kind.LITERAL, "()")),
    (lambda c: c.said.is_function and not c.has_axes and not c.uses.array, Kind.FUNCTION),
    (lambda c: c.said.count and not c.has_axes, Kind.SIZE),
    # The name, where the body does not use the parameter as an array.
    (lambda c: c.is_shapeless and c.named(names.SHAPE), Kind.SHAPE),
    (lambda c: c.is_shapeless and c.named(names.DTYPE), Kind.DTYPE),
    (lambda c: c.is_shapeless and c.named(names.PADDING), What(Kind.LITERAL, "'SAME'")),
    (lambda c: c.is_shapeless and c.named(names.FUNCTIONS), Kind.FUNCTIONS),
    (lambda c: not c.uses.array and c.name == MESH, Kind.MESH),
    (lambda c: not c.uses.array and c.named(names.KEY) and not c.uses.number, Kind.KEY),
    (lambda c: c.by_name and c.named(names.AXIS) and not c.uses.number, Kind.AXIS),
    (lambda c: c.by_name and c.named(names.STEP), Kind.SCALAR),
    (lambda c: c.by_name and c.named(names.OPTIMIZER_STATE), Kind.OPTIMIZER_STATE),
    (lambda c: c.by_name and c.is_annotated(Kind.TREE), Kind.TREE),
    (
        lambda c: (
            c.by_name
            and c.named(names.TREE)
            and not c.is_annotated(Kind.OBJECT)
            and not c.uses.attributes
        ),
        Kind.TREE,
    ),
    (lambda c: c.by_name and c.named(names.COUNTS) and c.uses.sequence, Kind.SHAPE),
    (lambda c: c.by_name and c.uses.sequence and not c.uses.number, Kind.LIST),
    (
        lambda c: c.by_name and c.named(names.FUNCTION) and c.is_plain and not c.uses.attributes,
        Kind.FUNCTION,
    ),
    (
        lambda c: c.by_name and c.named(names.BOOLEAN) and (c.uses.tested or not c.uses.number),
        Kind.FLAG,
    ),
    (
        lambda c: (
            c.by_name and c.named(names.STRING) and c.is_plain and not c.is_annotated(Kind.OBJECT)
        ),
        Kind.STRING,
    ),
    (lambda c: c.by_name and c.named(names.COUNT) and not c.is_annotated(Kind.OBJECT), Kind.SIZE),
    # Objects.
    (lambda c: c.is_annotated(Kind.OBJECT) and (not c.uses.array or c.is_class), _annotated),
    (lambda c: not c.annotated and not c.uses.array and c.like, _of_class),
    (lambda c: not c.annotated and c.has_methods, Kind.STUB),
    # Arrays.
    (lambda c: c.has_rank, Kind.ARRAY),
    (lambda c: c.is_annotated(Kind.SCALAR), Kind.SCALAR),
    (lambda c: not c.said.has_rank and (c.said.scalar or c.is_scalar_by_name), Kind.SCALAR),
    (lambda c: c.is_annotated(Kind.TREE), Kind.TREE),
)
