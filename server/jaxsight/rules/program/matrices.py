"""Recognize matrices of a special form, and read products, in traced programs."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow, axis_after
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.expressions import called, name_of, parsed
from jaxsight.wire.primitives import COPIES, RESHAPES
from jaxsight.wire.program import CONSTANT, LITERAL, Step

MOVES = RESHAPES | {"transpose", "copy", "copy_p"}
"""Primitives that give the same elements in another order or shape."""

_PRODUCTS = frozenset(
    {"dot", "matmul", "einsum", "tensordot", "vdot", "inner", "dot_general", "multi_dot"}
)
_IDENTITY = re.compile(r"jnp\.(?:eye|identity)\(\d+(?:, dtype=[\w.]+)?\)")
"""How the tracer writes a captured identity matrix."""


@dataclass(frozen=True, slots=True)
class Product:
    """A `dot_general`: by operand the contracted axes and those of the batch."""

    step: Step
    contracted: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]

    def free(self, flow: Flow, side: int) -> tuple[int, ...]:
        """Return the axes of an operand that the result keeps and the other operand lacks."""
        shape = flow.value(self.step.operands[side]).shape
        used_axes = {*self.contracted[side], *self.batch[side]}
        return tuple(axis for axis in range(len(shape)) if axis not in used_axes)

    def columns(self, flow: Flow, side: int) -> int:
        """How many elements of an operand are neither summed over nor in the batch."""
        shape = flow.value(self.step.operands[side]).shape
        return math.prod(shape[axis] for axis in self.free(flow, side))

    def flop(self, flow: Flow) -> int:
        """Floating-point operations: a multiplication and an addition for each pair."""
        shape = flow.value(self.step.operands[0]).shape
        summed = math.prod(shape[axis] for axis in self.contracted[0])
        return 2 * summed * flow.value(self.step.results[0]).elements


def product(step: Step | None) -> Product | None:
    """Read a product of arrays; nothing where it is another equation."""
    if step is None or step.primitive != "dot_general":
        return None
    match step.parameter("dimension_numbers"):
        case ((left, right), (left_batch, right_batch)):
            return Product(
                step,
                (_axes(left), _axes(right)),
                (_axes(left_batch), _axes(right_batch)),
            )
    return None


def _axes(axes: object) -> tuple[int, ...]:
    sequence = axes if isinstance(axes, tuple | list) else ()
    return tuple(axis for axis in sequence if isinstance(axis, int))


def multiplies(view: ProgramView, path: str) -> bool:
    """Whether the user's own expression there is a product of matrices."""
    text = view.quote(path)
    match parsed(text):
        case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
            return True
        case _:
            return called(text) in _PRODUCTS


def factors(expression: str) -> tuple[ast.expr, ast.expr] | None:
    """Return the two factors of a product as they are written."""
    match node := parsed(expression):
        case ast.BinOp(op=ast.MatMult()):
            return node.left, node.right
        case ast.Call(func=ast.Attribute(attr="dot" | "matmul") as func, args=[*args]):
            if len(args) == 2:
                return args[0], args[1]
            return (func.value, args[0]) if len(args) == 1 else None
    return None


def written(node: ast.expr, fallback: str, most: int = 24) -> str:
    """Return an operand as it is written, ready for an operator after it, in `most` characters."""
    text = ast.unparse(node)
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    return text if len(text) <= most else fallback


def readers(
    flow: Flow, number: int, through: frozenset[str] = MOVES, *, scaled: bool = False
) -> list[Step] | None:
    """Return the equations that read a value, moved or not; `None` where it is returned.

    Equations of the backward pass are skipped.

    Args:
        flow: the program.
        number: the value.
        through: primitives whose results are read in place of their operands.
        scaled: whether multiples of the value are read in its place too.
    """

    def goes_on(step: Step) -> bool:
        if step.backward:
            return False
        return step.primitive in through or (scaled and scales(flow, step))

    steps: list[Step] = []
    values = {flow.of(number)}
    for _, step in flow.forwards(number, goes_on, most=len(flow.steps)):
        if goes_on(step):
            values.update(map(flow.of, step.results))
        elif not step.backward:
            steps.append(step)
    return None if values & flow.returned else steps


def scales(flow: Flow, step: Step) -> bool:
    """Whether an equation multiplies or divides an array by one number, or changes its sign."""
    if step.primitive == "neg":
        return True
    if step.primitive not in ("mul", "div"):
        return False
    numbers = step.operands if step.primitive == "mul" else step.operands[1:]
    before = (flow.before(number, {"broadcast_in_dim"}) for number in numbers)
    return any(flow.values[number].elements == 1 for number in before)


def unmoved(flow: Flow, number: int, through: frozenset[str] = MOVES) -> Step | None:
    """Return the equation that makes a value, before it is moved."""
    return flow.producer(flow.before(number, through))


def only_of_constants(flow: Flow, number: int) -> bool:
    """Whether a value is made from captured arrays and literals alone, in up to a hundred steps."""
    sources = flow.sources(number, lambda step: not step.bodies, 100)
    return sources is not None and all(
        flow.values[source].origin in (CONSTANT, LITERAL) for source in sources
    )


def counts_along(flow: Flow, number: int) -> int | None:
    """Return the axis along which each element is its index; `None` where there is none."""
    step = flow.producer(number)
    if step is None:
        return None
    if step.primitive == "iota":
        return step.number("dimension", None)
    if step.primitive == "add" and 0 in map(flow.literal, step.operands):
        counted = (counts_along(flow, operand) for operand in step.operands)
        return next((axis for axis in counted if axis is not None), None)
    if step.primitive not in COPIES | RESHAPES | {"broadcast_in_dim"}:
        return None
    axis = counts_along(flow, step.operands[0])
    return axis_after(flow, step, axis) if axis is not None else None


def is_mask(flow: Flow, number: int) -> bool:
    """Whether a value is true on the diagonal of its last two axes, which are of one size."""
    shape, step = flow.value(number).shape, flow.producer(number)
    if len(shape) < 2 or shape[-1] != shape[-2] or step is None:
        return False
    if step.primitive == "broadcast_in_dim":
        return _is_same_matrix(flow, step) and is_mask(flow, step.operands[0])
    axes = {counts_along(flow, operand) for operand in step.operands}
    return step.primitive == "eq" and axes == {len(shape) - 1, len(shape) - 2}


def _is_same_matrix(flow: Flow, step: Step) -> bool:
    """Whether an equation gives the matrices of its operand, perhaps transposed or repeated."""
    match step.primitive:
        case "broadcast_in_dim":
            before, after = (flow.value(n).shape for n in (step.operands[0], step.results[0]))
            return before == after[-2:]
        case "transpose":
            order = step.numbers("permutation")
            *first, i, j = range(len(order))
            return order in ((*first, j, i), (*first, i, j))
        case primitive:
            return primitive in COPIES


def is_identity(flow: Flow, number: int) -> bool:
    """Whether a value is an identity matrix, or a batch of them."""
    value, step = flow.value(number), flow.producer(number)
    if len(value.shape) < 2 or value.shape[-1] != value.shape[-2]:
        return False
    if step is None:
        return bool(_IDENTITY.fullmatch(value.said))
    if is_mask(flow, number):
        return True
    return _is_same_matrix(flow, step) and is_identity(flow, step.operands[0])


def is_diagonal(flow: Flow, number: int, most: int = 10) -> bool:
    """Whether all elements of a value are zero but those on the diagonal of its last two axes."""
    step = flow.producer(number)
    shape = flow.value(number).shape
    if is_identity(flow, number):
        return True
    if step is None or not most or len(shape) < 2 or shape[-1] != shape[-2]:
        return False
    match step.primitive:
        case "select_n" if len(step.operands) == 3:
            return is_mask(flow, step.operands[0]) and flow.literal(step.operands[1]) == 0
        case "mul":
            return any(is_diagonal(flow, operand, most - 1) for operand in step.operands)
        case "div" if flow.literal(step.operands[1]) in (None, 0):
            return False
        case name if name in ("div", "neg") or _is_same_matrix(flow, step):
            return is_diagonal(flow, step.operands[0], most - 1)
    return False


def one_hot_axis(flow: Flow, number: int) -> int | None:
    """Return the axis along which a value is 1 at an index and 0 elsewhere; `None` for others."""
    step = flow.producer(number)
    match step.primitive if step is not None else "":
        case "gather" if step is not None:  # rows of an identity matrix
            shape = flow.value(step.operands[0]).shape
            is_row = len(shape) == 2 and step.numbers("slice_sizes")[1:] == shape[1:]
            is_one_hot = is_row and is_identity(flow, step.operands[0])
            return len(flow.value(number).shape) - 1 if is_one_hot else None
        case "eq" if step is not None:
            return _compared_along(flow, step)
        case name if step is not None and (name == "transpose" or name in COPIES):
            axis = one_hot_axis(flow, step.operands[0])
            return axis_after(flow, step, axis) if axis is not None else None
    return None


def _compared_along(flow: Flow, step: Step) -> int | None:
    """Return the axis along which a comparison is of a whole number with all indices."""
    for number, compared in (step.operands, step.operands[::-1]):
        axis = counts_along(flow, number)
        if axis is None or not flow.value(compared).dtype.startswith(("int", "uint")):
            continue
        if flow.value(compared).shape[axis : axis + 1] == (1,) or _repeats(flow, compared, axis):
            return axis
    return None


def _repeats(flow: Flow, number: int, axis: int) -> bool:
    """Whether a value is the same all along an axis."""
    step = flow.producer(number)
    if step is None or step.primitive != "broadcast_in_dim":
        return False
    axes, shape = step.numbers("broadcast_dimensions"), flow.value(step.operands[0]).shape
    if axis not in axes:
        return True
    inner = axes.index(axis)
    return shape[inner] == 1 or _repeats(flow, step.operands[0], inner)


def calls(expression: str) -> Iterator[ast.Call]:
    """Yield the calls of an expression that is Python, the outermost first."""
    tree = parsed(expression)
    if isinstance(tree, ast.expr):
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def argument(expression: str, names: Sequence[str], fallback: str) -> str:
    """Return the first argument of a call of one of these functions, where it is short."""
    for call in calls(expression):
        if name_of(call) in names and call.args:
            return written(call.args[0], fallback)
    return fallback
