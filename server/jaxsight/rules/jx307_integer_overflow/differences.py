"""Find differences of unsigned integers in forms that are wrong where they wrap around."""

from __future__ import annotations

import ast
import re

from jaxsight.rules.jx307_integer_overflow.integers import SIGNED, Integers, bits_of, holds_note
from jaxsight.rules.program.steps import parameter
from jaxsight.rules.text.expressions import Expression, name_of
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step

_LATER = re.compile(
    r"end|stop|\bhi\b|high|upper|max|last|next|after|now|total|indptr|offset|cum", re.IGNORECASE
)
"""Names of what is not less than what is subtracted from it."""

_EARLIER = re.compile(
    r"(?:^|[^a-z])(?:lower|low|lo|least|min|minimum|begin|start|starts|first|floor|origin)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Names of what is not greater than what it is subtracted from."""

_ABSOLUTE = frozenset({"abs", "absolute", "fabs"})

_INSTEAD = {
    "lt": "compare the operands instead: `a < b`",
    "ge": "compare the operands instead: `a >= b`",
    "gt": "compare the operands instead: `a > b`",
    "le": "compare the operands instead: `a <= b`",
    "max": "subtract where the result is positive: `jnp.where(a > b, a - b, 0)`",
}


def unsigned_difference(integers: Integers, step: Step, node: Expression) -> Violation | None:
    """`abs(a - b)`, `(a - b) ** 2`, `(a - b) < 0` and `(a - b).astype(float)` of unsigned."""
    dtype = integers.dtype(step)
    if step.primitive != "sub" or not dtype.startswith("uint"):
        return None
    a, b = step.operands
    first, second = integers.intervals.of(a), integers.intervals.of(b)
    if first is None or second is None or first.least >= second.most:
        return None
    either = all(map(integers.is_input, (a, b)))
    literal = second.one is not None and integers.is_input(a)
    if _is_absolute(integers, step, node) and (either or literal):
        return Violation(
            f"`abs` has no effect on the unsigned difference {integers.quoted(step)}",
            step.path,
            help="use `jnp.maximum(a, b) - jnp.minimum(a, b)`, or convert both to a signed "
            "type first",
            notes=(f"{dtype} differences below zero wrap around",),
        )
    for user in integers.flow.used_by(step.results[0]):
        orders = literal and user.primitive in ("gt", "le") and _has_zero(integers, user, 1)
        if orders or ((either or literal) and _compares_with_zero(integers, user)):
            return Violation(
                f"{integers.quoted(step)} is never below zero: {dtype} differences wrap around",
                step.path,
                help=_INSTEAD[user.primitive],
            )
        if not either or not integers.is_small(step) or _is_later(node):
            continue
        if _squares(user):
            return Violation(
                f"square of a {dtype} difference wraps around",
                step.path,
                help=SIGNED,
                notes=(holds_note(dtype),),
            )
        if _widens(integers, user):
            return Violation(
                f"{integers.quoted(step)} wraps around in {dtype} before it is converted",
                step.path,
                help="convert the operands, not the difference: "
                "`a.astype(jnp.float32) - b.astype(jnp.float32)`",
                notes=(f"{dtype} differences below zero wrap around",),
            )
    return None


def _widens(integers: Integers, user: Step) -> bool:
    """Whether an equation converts to a dtype with a sign and more bits, or to floats."""
    if user.primitive != "convert_element_type":
        return False
    before = integers.flow.value(user.operands[0]).dtype
    after = integers.flow.value(user.results[0]).dtype
    return after.startswith(("float", "bfloat", "complex")) or bits_of(after) > bits_of(before)


def _compares_with_zero(integers: Integers, user: Step) -> bool:
    if user.primitive == "max":
        return _has_zero(integers, user, 0) or _has_zero(integers, user, 1)
    return user.primitive in ("lt", "ge") and _has_zero(integers, user, 1)


def _has_zero(integers: Integers, step: Step, index: int) -> bool:
    interval = integers.intervals.of(step.operands[index]) if len(step.operands) == 2 else None
    return interval is not None and interval.one == 0


def _is_absolute(integers: Integers, step: Step, node: Expression) -> bool:
    """Whether the user takes the absolute value of an expression, which is no equation."""
    match integers.parent(step, node):
        case ast.Call() as call:
            return name_of(call) in _ABSOLUTE
        case ast.Assign(targets=[ast.Name(id=name)]):
            function = integers.function(step)
            calls = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.Call)
                and name_of(node) in _ABSOLUTE
                and any(isinstance(a, ast.Name) and a.id == name for a in node.args)
            ]
            stores = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.Name)
                and node.id == name
                and isinstance(node.ctx, ast.Store)
            ]
            return bool(calls) and len(stores) == 1
        case _:
            return False


def _is_later(node: Expression) -> bool:
    """Return whether a difference is of an end and a start, as one of their names says."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.Call(args=[left, right]):
            later = _LATER.search(ast.unparse(left)) is not None
            return later or _EARLIER.search(ast.unparse(right)) is not None
        case _:
            return False


def _squares(user: Step) -> bool:
    match user.primitive:
        case "square":
            return True
        case "integer_pow":
            exponent = parameter(user, "y")
            return isinstance(exponent, int) and exponent % 2 == 0
        case "mul":
            return user.operands[0] == user.operands[1]
        case _:
            return False
