"""JX330: shapes that do not fit an operation: broadcasts, products, reshapes, joins, axes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.meshes.divided import ArrayType
from jaxsight.rules.differences import shape_text
from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.failure_text import jax_page
from jaxsight.rules.jx330_incompatible_shapes.broadcasting import Shape, added_axes, conflict
from jaxsight.rules.operands import arrays
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import parsed_call
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import MOST, quoted, short
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX330",
    "incompatible-shapes",
    "Shapes that do not fit an operation.",
)

_ALIGNED = "axes are aligned from the right, and each pair must be equal or 1"
_CONTRACTED = "make the last axis of the first operand and the second to last of the other equal"


@dataclass(frozen=True, slots=True)
class NewOperand:
    """The source of an operand, and what it is to be replaced with, for the fix."""

    old: str
    new: str


ERRORS = ErrorTable("TypeError", "ValueError", "IndexError")
RULE.explains(ERRORS.explain)


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"-?\d+", text))


def _shapes(text: str) -> list[Shape]:
    return [_shape(each) for each in re.findall(r"\([\d, ]*\)", text)]


def _listed(shapes: Sequence[Shape]) -> str:
    return ", ".join(map(shape_text, shapes[:3]))


def _source(named: Sequence[tuple[str, ArrayType]], shape: Shape) -> str:
    """Return the source of the only operand of a shape, or an empty string."""
    found = {source for source, type in named if type.shape == shape}
    return found.pop() if len(found) == 1 else ""


def _rewritten(source: str, suffix: str) -> NewOperand:
    return NewOperand(source, f"{source if source.isidentifier() else f'({source})'}{suffix}")


@ERRORS.explains(
    r"(?:\w+ got incompatible shapes for broadcasting: |operands could not be broadcast together "
    r"with shapes |Incompatible shapes for broadcasting: "
    r"(?:shapes=\[)?)(?P<shapes>[\d, ()]+)\]?\.?$"
)
def of_broadcast(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    shapes = _shapes(match["shapes"])
    pair = conflict(shapes)
    if pair is None:
        return Violation(f"cannot broadcast {_listed(shapes)}", notes=(_ALIGNED,))
    named = arrays(failure, expression)
    first, second = (shapes[at] for at in pair.operands)
    names = _source(named, first), _source(named, second)
    texts = shape_text(first), shape_text(second)
    subject = " and ".join(
        f"{quoted(name, most=20)} {text}" if name else text
        for name, text in zip(names, texts, strict=True)
    )
    message = (
        f"cannot broadcast {subject}: axis -{pair.axis} is {pair.sizes[0]} and {pair.sizes[1]}"
    )
    if len(message) > MOST:
        message = f"cannot broadcast {' and '.join(texts)}"
    shorter, axes = names[len(first) > len(second)], added_axes(first, second)
    help, data = "make the axes equal, or 1", None
    if axes and shorter:
        data = _rewritten(shorter, f"[{axes}]")
        help = f"add an axis: `{short(data.new)}`"
    elif len(first) == len(second) == 2 and first == second[::-1] and names[1]:
        help = f"transpose one of them: `{short(_rewritten(names[1], '.T').new)}`"
    return Violation(message, help=help, notes=(_ALIGNED,), data=data, url=jax_page(failure))


@ERRORS.explains(
    r"Incompatible (?:shapes|types) for broadcasting: (?:input type=\w+\[)?\(?(?P<given>[\d, ]*)"
    r"[\])] and requested (?:shape |type=\w+\[)\(?(?P<wanted>[\d, ]*)[\])]"
)
def of_requested(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    given, wanted = _shape(match["given"]), _shape(match["wanted"])
    name = _source(arrays(failure, expression), given)
    subject = f"{quoted(name, most=24)} of shape" if name else "shape"
    message = f"cannot broadcast {subject} {shape_text(given)} to {shape_text(wanted)}"
    help = "make its axes equal or 1, aligned from the right, or add axes with `[..., None]`"
    match parsed_call(expression):
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as items)):
            place = quoted(ast.unparse(items), most=24)
            message = (
                f"cannot write {subject} {shape_text(given)} to {place} of shape "
                f"{shape_text(wanted)}"
            )
            help = "index as many items as are written, or give the value the shape of the items"
    return Violation(message, help=help, url=jax_page(failure))


@ERRORS.explains(
    r"dot_general requires contracting dimensions to have the same shape, got "
    r"\((?P<left>[\d, ]*)\) and \((?P<right>[\d, ]*)\)"
)
def of_product(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    left, right = match["left"].rstrip(","), match["right"].rstrip(",")
    named = arrays(failure, expression)
    if len(named) < 2:
        message = f"{quoted(expression, 'product')} contracts axes of different sizes"
        return Violation(f"{message}: {left} and {right}", help=_CONTRACTED)
    (first, a), (second, b) = named[-2:]
    texts = shape_text(a.shape), shape_text(b.shape)
    message = (
        f"product of {quoted(first, most=20)} {texts[0]} and {quoted(second, most=20)} {texts[1]} "
        f"contracts axes of {left} and {right}"
    )
    if len(message) > MOST:
        message = f"product of {texts[0]} and {texts[1]} contracts axes of {left} and {right}"
    help, data = _CONTRACTED, None
    if len(a.shape) == len(b.shape) == 2:
        if a.shape[1] == b.shape[1] != a.shape[0]:
            data = _rewritten(second, ".T")
        elif a.shape[0] == b.shape[0] != b.shape[1]:
            data = _rewritten(first, ".T")
    if data is not None:
        help = f"transpose one of them: `{short(data.new)}`"
    return Violation(message, help=help, data=data, url=jax_page(failure))


@ERRORS.explains(
    r"cannot reshape array of shape \((?P<shape>[\d, ]*)\) \(size (?P<size>\d+)\) into shape "
    r"[\[(](?P<wanted>[-\d, ]*)[\])]"
)
def of_reshape(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    size, wanted = int(match["size"]), _shape(match["wanted"])
    help = "use sizes whose product is that of the array, one of which may be -1"
    for at in (len(wanted) - 1, 0) if -1 not in wanted else ():
        others = math.prod(wanted[:at]) * math.prod(wanted[at + 1 :])
        if others and size % others == 0:
            sizes = ", ".join(str(-1 if at == i else each) for i, each in enumerate(wanted))
            help = f"let -1 stand for the size that follows, here {size // others}: `({sizes})`"
            break
    many = f" to {math.prod(wanted):,}" if -1 not in wanted else ""
    return Violation(
        f"cannot reshape ({match['shape']}) into {shape_text(wanted)}: {size:,} elements{many}",
        help=help,
        url=jax_page(failure),
    )


@ERRORS.explains(
    r"Cannot concatenate arrays with different numbers of dimensions: got (?P<shapes>[\d, ()]+)"
)
def of_ranks(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    shapes = _shapes(match["shapes"])
    low = min(shapes, key=len)
    name = _source(arrays(failure, expression), low) or "x"
    last = ", ".join(["...", *["None"] * (max(map(len, shapes)) - len(low))])
    return Violation(
        f"cannot join arrays of different rank: {_listed(shapes)}",
        help=f"add an axis, as in `{short(name)}[{last}]`, or join along a new axis: `jnp.stack`",
    )


@ERRORS.explains(
    r"Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
    r"concatenated: concatenating along dimension (?P<axis>\d+) for shapes (?P<shapes>[\d, ()]+)"
)
def of_join(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    shapes, axis = _shapes(match["shapes"]), int(match["axis"])
    sizes = enumerate(zip(*shapes, strict=False))
    differing = [at for at, of_axis in sizes if len(set(of_axis)) > 1]
    help = "make all other axes equal: slice or pad"
    if len(differing) == 1:
        help = f"join along the axis in which they differ: `axis={differing[0]}`"
    others = ", ".join(str(at) for at in differing if at != axis)
    return Violation(
        f"cannot join along axis {axis}: shapes {_listed(shapes)} differ in axis {others}",
        help=help,
    )


@ERRORS.explains(r"All input arrays must have the same shape\.(?: Got (?P<shapes>[\d, ()]+))?")
def of_stack(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    shapes = _shapes(match["shapes"] or "")
    shapes = shapes or [type.shape for _, type in arrays(failure, expression)]
    return Violation(
        f"cannot stack arrays of different shapes: {_listed(shapes)}".rstrip(": "),
        help="pad them to one shape, or join them along an axis with `jnp.concatenate`",
    )


ERRORS.says(
    r"dot_general requires lhs batch dimensions and rhs batch dimensions to have the same shape, "
    r"got (?P<left>\([\d, ]*\)) and (?P<right>\([\d, ]*\))",
    "batch axes of the operands of {expression:q} differ: {left} and {right}",
    help="make the leading axes equal, or 1 for `jnp.matmul`",
)
ERRORS.says(
    r"axis (?P<axis>-?\d+) is out of bounds for array of dimension 0",
    "axis {axis} of {expression:q}, whose array has no axis",
    help="remove `axis=`: a scalar has no axis",
)
ERRORS.says(
    r"axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<rank>\d+)",
    "axis {axis} of {expression:q}, whose array has rank {rank}",
    help="use an axis of the array: they count from 0, and -1 is the last one",
)
ERRORS.says(
    r"Too many indices: array is (?P<rank>\d+)-dimensional, but (?P<count>\d+) were indexed",
    "{expression:q} indexes {count} axes of an array of rank {rank}",
    help="use one index for each axis; `None` adds an axis, `...` stands for those in between",
)
ERRORS.says(
    r"Too many indices: (?P<rank>\d+)-dimensional array indexed with (?P<count>\d+) ",
    "{expression:q} indexes {count} axes of an array of rank {rank}",
    help="use one index for each axis; `None` adds an axis, `...` stands for those in between",
)
ERRORS.says(
    r"transpose permutation isn't a permutation of operand dimensions, got permutation "
    r"(?P<axes>\([-\d, ]*\)) for operand shape (?P<shape>\([\d, ]*\))",
    "axes {axes} of {expression:q} do not order the axes of shape {shape}",
    help="name each axis once, counted from 0, or swap two with `jnp.swapaxes`",
)
ERRORS.says(
    r"conv_general_dilated lhs feature dimension size divided by feature_group_count must equal "
    r"the rhs input feature dimension size, but (?P<lhs>\d+) // (?P<groups>\d+) != (?P<rhs>\d+)",
    "convolution of {lhs} channels with a kernel for {rhs} ({groups} groups)",
    help="check `dimension_numbers`: the kernel's `I` axis is the image's `C` axis divided by "
    "`feature_group_count`",
)
