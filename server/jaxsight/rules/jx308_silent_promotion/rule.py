"""JX308: an operand of a wider type promotes a bfloat16 or float16 array to float32.

Types are joined as in https://docs.jax.dev/en/latest/type_promotion.html: Python numbers are weakly
typed and adapt to the array, arrays and NumPy's scalars are not and do not. The same holds of
float32 arrays and float64 operands where 64-bit types are enabled.
"""

# Longer than most rules: where the wider operand comes from is followed back, and what becomes of
# the result forward.

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import parsed_statement
from jaxsight.rules.wording import cut, quoted
from jaxsight.text.units import size
from jaxsight.wire.primitives import CUMULATIVE, ELEMENTWISE, MOVES, PICKS, REDUCTIONS
from jaxsight.wire.program import CONSTANT, LITERAL, Step

RULE = Rule(__name__, "Operand of a wider type promotes an array.", severity="warning")

_WIDER = {
    "bfloat16": frozenset({"float32", "float64"}),
    "float16": frozenset({"float32", "float64"}),
    "float32": frozenset({"float64"}),
}
_JOINS = frozenset(
    {"add", "sub", "mul", "div", "max", "min", "select_n", "pow", "rem", "atan2", "concatenate",
     "dot_general", "clamp", "stack"}
)  # fmt: skip
_FUNCTIONS = frozenset(
    {
        "add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "where",
        "power", "concatenate", "stack", "hstack", "vstack", "append", "dot", "matmul", "einsum",
        "tensordot", "inner", "outer", "vdot", "clip", "hypot", "arctan2", "mod", "remainder",
        "select", "fmax", "fmin", "float_power", "column_stack", "dstack",
    }
)  # fmt: skip
"""Functions of `jax.numpy` that join the types of their operands, and compute in no other."""
_OF_TWO = _FUNCTIONS - {"where", "select", "concatenate", "stack", "hstack", "vstack", "einsum"}
_FOLLOWED = (ELEMENTWISE | MOVES | PICKS | REDUCTIONS | CUMULATIVE) | {
    "dynamic_update_slice", "concatenate", "pad", "sort",
}  # fmt: skip
_TRIED = 4
"""Equations of one expression that are looked at: an unrolled loop has many."""
_LONGEST = 40
"""Characters of an expression that the help repeats, beside those that replace it."""
_FAR = 300
"""Equations before and after a promotion: what lies beyond counts as an argument, or as reduced."""
_UNPACKED = ("broadcast_in_dim", "reshape", "expand_dims", "convert_element_type", "transpose")


class _Origin(Enum):
    """Where the wider operand comes from."""

    NUMBER = "a number"
    CAPTURED = "a captured array"
    CREATED = "an array"
    GIVEN = "an argument"
    UPCAST = "an array that was cast to the wider type"
    PROMOTED = "an array that was promoted before"


@dataclass(frozen=True, slots=True)
class _Join:
    """An equation of two operands, of which the narrow one was converted for it."""

    step: Step
    narrow: int
    wide: int
    narrow_first: bool


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's expressions that promote an array, unless the wider type is wanted.

    It is wanted where the result is cast back, where it meets another array of the wider type, and
    where it is only reduced to a number, as a loss is.
    """
    flow = view.flow
    dtypes = {value.dtype for value in flow.values}
    if not any(_WIDER[dtype] & dtypes for dtype in _WIDER.keys() & dtypes):
        return
    promoted: set[int] = set()
    tried: Counter[object] = Counter()
    for step in flow.forward_steps(*_JOINS):
        join = _join(flow, step)
        if join is None:
            continue
        origin = _origin(flow, join.wide, promoted)
        promoted.add(flow.of(step.results[0]))
        text = view.quote(step.path)
        tried[step.span] += 1
        if tried[step.span] > _TRIED or not _joins(text) or not _is_accident(flow, join, origin):
            continue
        tried[step.span] = _TRIED
        narrow, result = flow.value(join.narrow), flow.value(step.results[0])
        before = result.elements * (4 if narrow.dtype == "float32" else 2)
        first, second = _written(text, join)
        is_created = origin in (_Origin.NUMBER, _Origin.CAPTURED, _Origin.CREATED)
        subject = origin.value if is_created else "an operand"
        subject += f" of type {cut(flow.value(join.wide).text, 24)}"
        name = quoted(second, most=36) if second else subject
        dtype = f"{first}.dtype" if first.isidentifier() else f"jnp.{narrow.dtype}"
        yield Violation(
            f"{name} promotes {cut(narrow.text, 24)} to {result.dtype}",
            step.path,
            help=_help(second if len(second) <= _LONGEST else "", dtype, origin),
            notes=(
                f"{subject} does not adapt to {narrow.dtype}, as Python numbers do",
                f"the result takes {size(result.bytes)} instead of {size(before)}",
            ),
        )


def _help(wide: str, dtype: str, origin: _Origin) -> str:
    """Return what to do about an operand that is written as `wide`, empty where that is unclear."""
    if "finfo(" in wide:
        return f"take the limit of the array's own type: `jnp.finfo({dtype})`"
    node, operand = parsed_statement(wide), wide
    if origin is _Origin.NUMBER:
        match node:
            case ast.Call(func=ast.Attribute(attr="float32" | "float64"), args=[number]):
                number_text = ast.unparse(number)
            case _:
                number_text = f"float({wide or '…'})"
        return f"use a Python number, which adapts to the array: `{number_text}`"
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="astype")):
            operand = ast.unparse(value)
        case None:
            operand = ""
        case _ if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            operand = f"({wide})"
    cast = f"{operand}.astype({dtype})"
    if origin is _Origin.CREATED and ".astype(" not in wide:
        return f"create it with `dtype={dtype}`, or cast it: `{cast}`"
    return f"cast it first: `{cast}`"


def _join(flow: Flow, step: Step) -> _Join | None:
    """Return the operands of an equation that converts one of them itself to the other's type."""
    operands = step.operands[1:] if step.primitive == "select_n" else step.operands
    result_dtype = flow.value(step.results[0]).dtype
    before = [_before(flow, step, number) for number in operands]
    narrow = {at: number for at, (number, wider) in enumerate(before) if wider}
    if step.primitive == "dot_general":
        narrow = {
            at: flow.of(number)
            for at, number in enumerate(operands)
            if result_dtype in _WIDER.get(flow.value(number).dtype, ())
        } or narrow
    wide = {
        at: number
        for at, (number, _) in enumerate(before)
        if at not in narrow and flow.value(number).dtype == result_dtype
    }
    if len(narrow) == 2 and not wide and step.primitive != "concatenate":
        half, other = narrow.values()
        if flow.value(half).dtype != flow.value(other).dtype:  # float16 with bfloat16
            return _Join(step, half, other, narrow_first=True)
    if not narrow or not wide:
        return None
    first = max(narrow, key=lambda at: flow.value(narrow[at]).elements)
    if result_dtype not in _WIDER.get(flow.value(narrow[first]).dtype, ()):
        return None
    second = min(wide, key=lambda at: flow.value(wide[at]).elements)
    return _Join(step, narrow[first], wide[second], narrow_first=first < second)


def _before(flow: Flow, step: Step, number: int) -> tuple[int, bool]:
    """Return an operand before its broadcast and conversion, and whether that widened it."""
    wider = False
    while (maker := flow.producer(number)) is not None:
        if maker.primitive not in _UNPACKED or maker.span != step.span or len(maker.operands) != 1:
            break
        before = flow.value(maker.operands[0]).dtype
        wider = wider or flow.value(number).dtype in _WIDER.get(before, ())
        number = maker.operands[0]
    return flow.of(number), wider


def _origin(flow: Flow, number: int, promoted: set[int]) -> _Origin:
    """Return where the wider operand comes from; what comes from an array is that array's."""
    dtype = flow.value(number).dtype

    def goes_on(step: Step) -> bool:
        is_of_dtype = flow.value(step.results[0]).dtype == dtype
        has_operands = bool(step.operands) and not step.bodies
        return is_of_dtype and has_operands and promoted.isdisjoint(step.results)

    sources = flow.sources(number, goes_on, _FAR)
    if sources is None:
        return _Origin.GIVEN
    if promoted & sources:
        return _Origin.PROMOTED
    origins = {_origin_of(flow, source, dtype) for source in sources}
    for origin in (_Origin.GIVEN, _Origin.UPCAST, _Origin.CAPTURED, _Origin.CREATED):
        if origin in origins:
            return origin
    return _Origin.CREATED if flow.value(number).shape else _Origin.NUMBER


def _origin_of(flow: Flow, number: int, dtype: str) -> _Origin:
    """Return where a value comes from that others of a dtype are computed from."""
    value, step = flow.values[number], flow.producer(number)
    if value.dtype != dtype:
        is_float = value.dtype.startswith(("float", "bfloat"))
        return _Origin.UPCAST if is_float and value.shape else _Origin.CREATED
    if value.origin == LITERAL:
        return _Origin.NUMBER
    if value.origin == CONSTANT:
        return _Origin.CAPTURED
    return _Origin.GIVEN if step is None or step.bodies else _Origin.CREATED


def _is_accident(flow: Flow, join: _Join, origin: _Origin) -> bool:
    """Whether the wider type is hardly wanted."""
    narrow, wide = flow.value(join.narrow), flow.value(join.wide)
    promoted = flow.value(join.step.results[0])
    if narrow.elements < 2 or origin is _Origin.PROMOTED:
        return False
    if join.step.primitive == "dot_general":
        if origin is _Origin.UPCAST:
            return False
        if origin is _Origin.GIVEN and not (join.narrow_first or flow.producer(join.narrow)):
            return False  # weights that are stored in the narrow type
    elif (
        # The wider array may be what is meant; of float16 and bfloat16 neither is.
        origin in (_Origin.GIVEN, _Origin.UPCAST)
        and wide.dtype == promoted.dtype
        and wide.elements >= narrow.elements
    ):
        return False
    may_be_reduced = origin is _Origin.NUMBER
    return _stays_wide(flow, flow.of(join.step.results[0]), promoted.elements, may_be_reduced)


_WITHOUT_16_BITS = frozenset(
    {
        "cholesky", "eig", "eigh", "fft", "geqp3", "geqrf", "hessenberg", "householder_product",
        "lu", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve",
    }
)  # fmt: skip
"""Primitives that raise a `TypeError` for bfloat16 and float16: `jax/_src/lax/linalg.py`, `fft.py`.
"""


def _stays_wide(flow: Flow, number: int, count: int, may_be_reduced: bool) -> bool:
    """Whether some of a promoted array is returned or used without being cast back.

    It is followed through what computes element by element, moves or reduces, to an array or a
    number (`may_be_reduced`). Where it meets an array of its size that is wide anyway, it is meant.
    """
    dtype = flow.value(number).dtype

    def is_wide(user: Step) -> bool:
        result_dtype = flow.value(user.results[0]).dtype if user.results else ""
        casts = user.primitive == "convert_element_type" and result_dtype != dtype
        return result_dtype.startswith(("float", "bfloat")) and not casts and not user.backward

    def goes_on(user: Step) -> bool:
        follows = user.primitive in _FOLLOWED or user.primitive.startswith("scatter")
        return follows and is_wide(user)

    stays_wide, only_reduced = False, True
    reached, met = {number}, set[int]()
    for _, user in flow.forwards(number, goes_on, _FAR):
        if goes_on(user):
            reached.update(map(flow.of, user.results))
            if user.primitive in ELEMENTWISE:
                met.update(map(flow.of, user.operands))
        elif is_wide(user):
            if user.primitive in _WITHOUT_16_BITS and dtype == "float32":
                return False
            stays_wide, only_reduced = True, False
    for value in reached:
        # A gradient does not return the loss.
        if value in flow.outputs or not flow.values[value].shape:
            stays_wide = True
            only_reduced = only_reduced and flow.values[value].elements == 1
    is_kept = stays_wide and (may_be_reduced or not only_reduced)
    return is_kept and not any(_is_wide_anyway(flow, n, dtype, count) for n in met - reached)


def _is_wide_anyway(flow: Flow, number: int, dtype: str, count: int) -> bool:
    """Whether an array of so many elements is given in the wider type, or cast to it."""
    value = flow.values[number]
    if value.dtype != dtype or value.elements < count:
        return False
    if value.origin != LITERAL and flow.producer(number) is None:
        return True
    return _origin(flow, number, set()) is _Origin.GIVEN


def _joins(text: str) -> bool:
    """Whether an expression joins types itself: an operator, or a function that does."""
    match parsed_statement(text):
        case ast.BinOp() | ast.AugAssign():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            chosen = {"dtype", "preferred_element_type"} & {keyword.arg for keyword in keywords}
            return name in _FUNCTIONS and not chosen
        case _:
            return False


def _written(text: str, join: _Join) -> tuple[str, str]:
    """Return how the narrow and the wide operand are written; empty where that is unclear."""
    sides: list[ast.expr] = []
    match parsed_statement(text):
        case ast.BinOp(left=first, right=second) | ast.AugAssign(target=first, value=second):
            sides = [first, second]
        case ast.Call(func=ast.Attribute(attr="where"), args=[_, second, first]):
            sides = [first, second]  # `select_n` takes the case of a false condition first
        case ast.Call(func=ast.Attribute(attr="einsum"), args=[_, _, _] as parts):
            sides = parts[1:]
        case ast.Call(func=ast.Attribute(attr=name), args=[_, _] as sides) if name in _OF_TWO:
            pass
        case ast.Call(args=[ast.List(elts=[_, _] as sides) | ast.Tuple(elts=[_, _] as sides), *_]):
            pass
    texts = [ast.get_source_segment(text, node) or "" for node in sides] or ["", ""]
    return (texts[0], texts[1]) if join.narrow_first else (texts[1], texts[0])
