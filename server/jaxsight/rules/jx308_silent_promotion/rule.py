"""JX308: an operand of a wider type promotes a bfloat16 or float16 array to float32.

Types are joined as in https://docs.jax.dev/en/latest/type_promotion.html: Python numbers are weakly
typed and adapt to the array, arrays and NumPy's scalars are not and do not. The same holds of
float32 arrays and float64 operands where 64-bit types are enabled.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.exceptions import cut, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.view import ELEMENTWISE, SHAPED, Flow, Reading, elements
from jaxsight.rules.rule import Rule
from jaxsight.text.units import size
from jaxsight.wire.program import CONSTANT, LITERAL, Step, Value

RULE = Rule(
    "JX308",
    "silent-promotion",
    "Operand of a wider type promotes an array.",
    severity="warning",
)

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
_MOVES = SHAPED | {"gather", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "copy"}
_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "cumsum",
     "cumprod", "cummax", "sort"}
)  # fmt: skip
_OF_TWO = _FUNCTIONS - {"where", "select", "concatenate", "stack", "hstack", "vstack", "einsum"}
_FOLLOWED = ELEMENTWISE | _MOVES | _REDUCTIONS
_TRIED = 4
"""Equations of one expression that are looked at: an unrolled loop has many."""
_LONGEST = 40
"""Characters of an expression that the help repeats."""
_UNPACKED = ("broadcast_in_dim", "reshape", "expand_dims", "convert_element_type", "transpose")


class _Origin(Enum):
    """Where the wider operand comes from."""

    NUMBER = "a number with a type"
    CAPTURED = "a captured array"
    CREATED = "an array that is created in the program"
    GIVEN = "an argument"
    UPCAST = "an array that was cast to the wider type"
    PROMOTED = "an array that was promoted before"


@dataclass(frozen=True, slots=True)
class SilentPromotion:
    """A promotion."""

    narrow: str
    """The type of the array that is promoted: `bf16[8,16]`."""
    wide: str
    """The type of the operand that promotes it."""
    dtype: str
    """The dtype that results."""


@dataclass(frozen=True, slots=True)
class _Join:
    """An equation of two operands, of which the narrow one was converted for it."""

    step: Step
    narrow: int
    wide: int
    narrow_first: bool


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield the user's expressions that promote an array, unless the wider type is wanted.

    It is wanted where the result is cast back, where it meets another array of the wider type, and
    where it is only reduced to a number, as a loss is.
    """
    flow = reading.flow
    dtypes = {value.dtype for value in flow.values}
    if not any(_WIDER[dtype] & dtypes for dtype in _WIDER.keys() & dtypes):
        return
    promoted: set[int] = set()
    tried: Counter[object] = Counter()
    for step in flow.steps.values():
        if step.primitive not in _JOINS or step.backward or step.path in flow.ruled:
            continue
        join = _join(flow, step)
        if join is None:
            continue
        origin = _origin(flow, join.wide, flow.value(join.narrow).dtype, promoted)
        promoted.add(flow.of(step.results[0]))
        text = reading.quote(step.path)
        tried[step.span] += 1
        if tried[step.span] > _TRIED or not _joins(text) or not _is_accident(flow, join, origin):
            continue
        tried[step.span] = _TRIED
        yield _noticed(flow, join, origin, text)


def _noticed(flow: Flow, join: _Join, origin: _Origin, text: str) -> Noticed:
    narrow, wide = flow.value(join.narrow), flow.value(join.wide)
    result = flow.value(join.step.results[0])
    before = elements(result) * _bytes(narrow)
    first, second = _written(text, join)
    type_ = cut(wide.text, 24)
    name = quoted(second, most=36) if second else f"{_A[origin]} of type {type_}"
    array = first if first.isidentifier() else "x"
    return Noticed(
        f"{name} promotes {cut(narrow.text, 24)} to {result.dtype}",
        join.step.path,
        help=_help(second if len(second) <= _LONGEST else "", array, origin),
        notes=(
            f"{_A[origin]} of type {type_} does not adapt to {narrow.dtype}, as Python numbers do",
            f"the result takes {size(result.bytes)} instead of {size(before)}",
        ),
        data=SilentPromotion(narrow.text, wide.text, result.dtype),
    )


def _help(wide: str, array: str, origin: _Origin) -> str:
    """Return what to do about an operand that is written as `wide`, empty where that is unclear."""
    dtype = f"{array}.dtype"
    if "finfo(" in wide:
        return f"take the limit of the array's own type: `jnp.finfo({dtype})`"
    if origin is _Origin.NUMBER:
        match _parsed(wide):
            case ast.Call(func=ast.Attribute(attr="float32" | "float64"), args=[number]):
                number_text = ast.unparse(number)
            case _:
                number_text = f"float({wide or '…'})"
        return f"use a Python number, which adapts to the array: `{number_text}`"
    match _parsed(wide):
        case ast.Call(func=ast.Attribute(value=value, attr="astype")):
            cast = f"{ast.unparse(value)}.astype({dtype})"
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            cast = f"{wide}.astype({dtype})"
        case None:
            cast = f".astype({dtype})"
        case _:
            cast = f"({wide}).astype({dtype})"
    if origin is _Origin.CREATED and ".astype(" not in wide:
        return f"create it with `dtype={dtype}`, or cast it: `{cast}`"
    return f"cast it first: `{cast}`"


_A = {
    _Origin.NUMBER: "a number",
    _Origin.CAPTURED: "a captured array",
    _Origin.CREATED: "an array",
    _Origin.GIVEN: "an operand",
    _Origin.UPCAST: "an operand",
    _Origin.PROMOTED: "an operand",
}


def _bytes(value: Value) -> int:
    """Return the size of an element in bytes."""
    return 4 if value.dtype == "float32" else 2


def _join(flow: Flow, step: Step) -> _Join | None:
    """Return the operands of an equation that converts one of them itself to the other's type."""
    operands = step.operands[1:] if step.primitive == "select_n" else step.operands
    result = flow.value(step.results[0]).dtype
    narrow = [(i, before) for i, n in enumerate(operands) if (before := _before(flow, step, n))[1]]
    if step.primitive == "dot_general":
        narrow = [
            (index, (flow.of(number), True))
            for index, number in enumerate(operands)
            if result in _WIDER.get(flow.value(number).dtype, ())
        ] or narrow
    wide = [
        (index, _before(flow, step, number)[0])
        for index, number in enumerate(operands)
        if index not in {place for place, _ in narrow}
        and flow.value(_before(flow, step, number)[0]).dtype == result
    ]
    if len(narrow) == 2 and not wide and step.primitive != "concatenate":
        (first, (one, _)), (second, (other, _)) = narrow
        if flow.value(one).dtype != flow.value(other).dtype:  # float16 with bfloat16
            return _Join(step, one, other, narrow_first=first < second)
    if not narrow or not wide:
        return None
    place, (number, _) = max(narrow, key=lambda each: elements(flow.value(each[1][0])))
    if result not in _WIDER.get(flow.value(number).dtype, ()):
        return None
    other_place, other = min(wide, key=lambda each: elements(flow.value(each[1])))
    return _Join(step, number, other, narrow_first=place < other_place)


def _before(flow: Flow, step: Step, number: int) -> tuple[int, bool]:
    """Return an operand before its broadcast and conversion, and whether that widened it."""
    wider = False
    maker = flow.made_by(number)
    while (
        maker is not None
        and maker.primitive in _UNPACKED
        and maker.span == step.span
        and len(maker.operands) == 1
    ):
        before = flow.value(maker.operands[0]).dtype
        wider = wider or flow.value(number).dtype in _WIDER.get(before, ())
        number = maker.operands[0]
        maker = flow.made_by(number)
    return flow.of(number), wider


def _origin(flow: Flow, number: int, narrow: str, promoted: set[int]) -> _Origin:
    """Return where the wider operand comes from; what comes from an array is that array's."""
    dtype = flow.value(number).dtype
    waiting, seen = [flow.of(number)], set[int]()
    found = set[_Origin]()
    while waiting and len(seen) < 300:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        value, step = flow.values[each], flow.made_by(each)
        if each in promoted:
            return _Origin.PROMOTED
        if value.dtype != dtype:
            is_float = value.dtype.startswith(("float", "bfloat"))
            found.add(_Origin.UPCAST if is_float and value.shape else _Origin.CREATED)
        elif value.origin == LITERAL:
            found.add(_Origin.NUMBER)
        elif value.origin == CONSTANT:
            found.add(_Origin.CAPTURED)
        elif step is None or step.bodies:
            found.add(_Origin.GIVEN)
        elif not step.operands:
            found.add(_Origin.CREATED)
        else:
            waiting += map(flow.of, step.operands)
    for origin in (_Origin.GIVEN, _Origin.UPCAST, _Origin.CAPTURED, _Origin.CREATED):
        if origin in found:
            return origin
    return _Origin.CREATED if flow.value(number).shape else _Origin.NUMBER


def _is_accident(flow: Flow, join: _Join, origin: _Origin) -> bool:
    """Whether the wider type is hardly wanted."""
    narrow, wide = flow.value(join.narrow), flow.value(join.wide)
    result = flow.value(join.step.results[0])
    count = elements(result)
    if elements(narrow) < 2 or origin is _Origin.PROMOTED:
        return False
    if join.step.primitive == "dot_general":
        if origin is _Origin.UPCAST:
            return False
        if origin is _Origin.GIVEN and not (join.narrow_first or flow.made_by(join.narrow)):
            return False  # weights that are stored in the narrow type
    elif (
        # The wider array may be what is meant; of float16 and bfloat16 neither is.
        origin in (_Origin.GIVEN, _Origin.UPCAST)
        and wide.dtype == result.dtype
        and elements(wide) >= elements(narrow)
    ):
        return False
    fate = _fate(flow, flow.of(join.step.results[0]), count)
    if fate.meets_wide or not fate.stays_wide:
        return False
    return origin is _Origin.NUMBER or not fate.only_reduced


_WITHOUT_16_BITS = frozenset(
    {
        "cholesky", "eig", "eigh", "fft", "geqp3", "geqrf", "hessenberg", "householder_product",
        "lu", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve",
    }
)  # fmt: skip
"""Primitives that raise a `TypeError` for bfloat16 and float16: `jax/_src/lax/linalg.py`, `fft.py`.
"""


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of a promoted array."""

    stays_wide: bool = False
    """Some of it is returned or used without being cast back."""
    only_reduced: bool = True
    """What is not cast back is a number at the end."""
    meets_wide: bool = False
    """It is combined with an array of its size that is wide anyway."""


def _fate(flow: Flow, number: int, count: int) -> _Fate:
    """Follow a promoted array through what computes element by element, moves or reduces."""
    dtype = flow.value(number).dtype
    stays_wide, only_reduced = False, True
    waiting, made = [number], {number}
    met: list[int] = []
    while waiting and len(made) < 300:
        each = waiting.pop()
        value = flow.values[each]
        # A gradient does not return the loss.
        if each in flow.outputs or not value.shape:
            stays_wide = True
            only_reduced = only_reduced and elements(value) == 1
        for user in flow.used_by(each):
            if user.backward:
                continue
            result = flow.value(user.results[0]).dtype if user.results else ""
            if not result.startswith(("float", "bfloat")):
                continue
            if user.primitive == "convert_element_type" and result != dtype:
                continue
            if user.primitive in _FOLLOWED or user.primitive.startswith("scatter"):
                if user.primitive in ELEMENTWISE:
                    met += map(flow.of, user.operands)
                new = {*map(flow.of, user.results)} - made
                made |= new
                waiting += new
            elif user.primitive in _WITHOUT_16_BITS and dtype == "float32":
                return _Fate(meets_wide=True)
            else:
                stays_wide, only_reduced = True, False
    meets_wide = any(_is_wide_anyway(flow, each, dtype, count) for each in {*met} - made)
    return _Fate(stays_wide, only_reduced, meets_wide)


def _is_wide_anyway(flow: Flow, number: int, dtype: str, count: int) -> bool:
    """Whether an array of so many elements is given in the wider type, or cast to it."""
    value = flow.values[number]
    if value.dtype != dtype or elements(value) < count:
        return False
    if value.origin != LITERAL and flow.made_by(number) is None:
        return True
    return _origin(flow, number, "", set()) is _Origin.GIVEN


def _joins(text: str) -> bool:
    """Whether an expression joins types itself: an operator, or a function that does."""
    match _parsed(text):
        case ast.BinOp() | ast.AugAssign():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            chosen = {"dtype", "preferred_element_type"} & {each.arg for each in keywords}
            return name in _FUNCTIONS and not chosen
        case _:
            return False


def _written(text: str, join: _Join) -> tuple[str, str]:
    """Return how the narrow and the wide operand are written; empty where that is unclear."""
    match _parsed(text):
        case ast.BinOp(left=one, right=other) | ast.AugAssign(target=one, value=other):
            pass
        case ast.Call(func=ast.Attribute(attr=name), args=[one, other]) if name in _OF_TWO:
            pass
        case ast.Call(func=ast.Attribute(attr="where"), args=[_, other, one]):
            pass  # `select_n` takes the case of a false condition first
        case ast.Call(func=ast.Attribute(attr="einsum"), args=[_, one, other]):
            pass
        case ast.Call(args=[ast.List(elts=[one, other]) | ast.Tuple(elts=[one, other]), *_]):
            pass
        case _:
            return "", ""
    sides = [ast.get_source_segment(text, node) or "" for node in (one, other)]
    return (sides[0], sides[1]) if join.narrow_first else (sides[1], sides[0])


def _parsed(text: str) -> ast.AST | None:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    if len(body) != 1:
        return None
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]
