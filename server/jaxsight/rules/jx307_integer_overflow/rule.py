"""JX307: integer arithmetic that wraps around.

JAX integers wrap silently, and arithmetic keeps small dtypes: `uint8 + uint8` is uint8, and so are
`jnp.cumsum` and matrix products of uint8, while NumPy accumulates sums in 64 bits. Code that wraps
on purpose (hashes, generators of random numbers, bit masks) is not reported.
"""

# Longer than most rules: results that certainly wrap, literals that do not fit and unsigned
# differences are three searches.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx307_integer_overflow.integers import (
    SIGNED,
    Integers,
    bits_of,
    figure,
    holds_note,
    is_meant,
    literals,
    wider_help,
)
from jaxsight.rules.program.guards import Operators, is_written
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.interval import limits
from jaxsight.rules.program.matrices import product
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import (
    Expression,
    given,
    name_of,
    operands_of,
    parsed,
    stores_of,
)
from jaxsight.wire.primitives import COMPARISONS
from jaxsight.wire.program import LITERAL, Step

# Find differences of unsigned integers in forms that are wrong where they wrap around.

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
        compares = user.primitive in _INSTEAD and (literal or user.primitive not in ("gt", "le"))
        zeros = [integers.one(number) == 0 for number in user.operands if compares]
        if (either or literal) and any(zeros if user.primitive == "max" else zeros[1:]):
            return Violation(
                f"{integers.quoted(step)} is never below zero: {dtype} differences wrap around",
                step.path,
                help=_INSTEAD[user.primitive],
            )
        if not either or not integers.is_small(step) or _is_later(node):
            continue
        if _squares(user):
            message, notes = f"square of a {dtype} difference wraps around", (holds_note(dtype),)
            return Violation(message, step.path, help=SIGNED, notes=notes)
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


def _is_absolute(integers: Integers, step: Step, node: Expression) -> bool:
    """Whether the user takes the absolute value of an expression, which is no equation."""
    match integers.parent(step, node):
        case ast.Call() as call:
            return name_of(call) in _ABSOLUTE
        case ast.Assign(targets=[ast.Name(id=name)]):
            function = integers.function(step)
            return len(stores_of(name, function)) == 1 and any(
                isinstance(node, ast.Call)
                and name_of(node) in _ABSOLUTE
                and any(isinstance(a, ast.Name) and a.id == name for a in node.args)
                for node in ast.walk(function)
            )
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
            exponent = user.parameter("y")
            return isinstance(exponent, int) and exponent % 2 == 0
        case "mul":
            return user.operands[0] == user.operands[1]
        case _:
            return False


# Find Python integers that do not fit in the dtype that JAX converts them to.

_FILLS = {"full": 1, "full_like": 1, "clip": 1, "where": 1, "maximum": 0, "minimum": 0, "set": 0}
"""By name of a call, the first argument that may be an element of its result."""


def literal_too_large(integers: Integers, step: Step, node: Expression) -> Violation | None:
    """Find a Python integer that does not fit in the dtype that JAX converts it to."""
    dtype, within = integers.dtype(step), integers.limits(step)
    least, most = within
    values = list(map(integers.flow.value, step.operands))
    converts = step.primitive == "convert_element_type"
    if converts:
        is_given = isinstance(node, ast.Call) and name_of(node) != "astype"
        numbers = literals(given(node)) if isinstance(node, ast.Call) and is_given else []
        converted = integers.one(step.operands[0]) if values[0].origin == LITERAL else None
        numbers = [number for number in numbers if number == converted]
    else:
        numbers = [each for each in _arguments(node) if not _may_be(each, node, within)]
    for number in numbers:
        if least <= number <= most:
            continue
        used = (number - least) % (most - least + 1) + least
        said = [value.said for value in values if value.origin == LITERAL]
        if not converts and not {str(used), str(number)} & set(said):
            continue
        verb = "compares with" if step.primitive in COMPARISONS else "uses"
        return Violation(
            f"`{number}` does not fit in {dtype}: JAX {verb} {used} instead",
            step.path,
            help=f"use an integer from {least} to {most}, or convert the array to a wider dtype "
            "first",
            notes=(holds_note(dtype),),
        )
    return None


def _arguments(node: Expression) -> list[int]:
    """Return the literals that an expression converts to the dtype of its array."""
    match node:
        case ast.Call(args=args) if name_of(node) in _FILLS:
            keywords = [
                keyword.value
                for keyword in node.keywords
                if keyword.arg in ("fill_value", "min", "max", "a_min", "a_max", "x", "y")
            ]
            nodes = [*args[_FILLS[name_of(node)] :], *keywords]
        case _:
            nodes = [] if isinstance(node, ast.Call) else operands_of(node)
    return literals(nodes)


def _may_be(number: int, node: Expression, within: tuple[int, int]) -> bool:
    """Return whether a literal that does not fit gives the right result all the same.

    Such are `x + -1`, and `-1` as a marker of missing values.
    """
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            span = within[1] - within[0]
            if isinstance(op, ast.Add | ast.Sub):
                return within[0] == 0 and -span <= number < 0
            return not isinstance(op, ast.Mult)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            return number == -1
        case _:
            return False


RULE = Rule(__name__, "Integer arithmetic wraps around.", severity="warning")
_PRODUCTS = frozenset({"dot", "matmul", "einsum", "vdot", "inner", "tensordot", "vecdot"})
_RANGES = frozenset({"arange", "iota"})
_POWERS = frozenset({"square", "power", "pow"})
_WRITTEN: dict[str, tuple[frozenset[str], Operators]] = {
    "add": (_RANGES | {"add"}, (ast.Add,)),
    "sub": (frozenset({"sub", "subtract", "diff", "ediff1d"}), (ast.Sub,)),
    "mul": (_RANGES | _PRODUCTS | {"mul", "multiply", "outer", "kron"}, (ast.Mult,)),
    "integer_pow": (_POWERS, (ast.Pow,)),
    "square": (_POWERS, (ast.Pow,)),
    "dot_general": (_PRODUCTS, (ast.MatMult,)),
    "neg": (frozenset({"neg", "negative"}), (ast.USub,)),
    "reduce_sum": (frozenset({"sum", "nansum"}), ()),
    "cumsum": (frozenset({"cumsum", "nancumsum"}), ()),
}
"""By primitive the functions, and the operator, that users write it with."""
_PRIMITIVES = COMPARISONS | {
    *_WRITTEN,
    "convert_element_type",
    "broadcast_in_dim",
    "scatter",
    "max",
    "min",
}
_TOO_LARGE = re.compile(
    r"Python int(?:eger)? (?P<number>-?\d{1,300}) (?:out of bounds for|too large to convert to) "
    r"(?P<dtype>\w+)|"
    r"Got <class 'int'> with value (?P<value>-?\d{1,300})\b"
)


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize the `OverflowError` of a Python integer that does not fit in its dtype."""
    match = _TOO_LARGE.search(error.message)
    if match is None or not error.is_a("OverflowError"):
        return None
    number, dtype = int(match["number"] or match["value"]), match["dtype"] or "int32"
    within = limits(dtype)
    if within is None:
        return None
    if dtype != "int32":
        help = f"use an integer from {within[0]} to {within[1]}, or a wider dtype"
    elif _indexes(error.node, number):
        help = 'enable 64-bit types with `jax.config.update("jax_enable_x64", True)`'
    else:
        help = f"use a float: `{float(number)!r}`"
    return Violation(
        f"Python integer {figure(number)} does not fit in {dtype}",
        help=help,
        notes=(error.said,),
    )


def _indexes(node: Expression | None, number: int) -> bool:
    """Return whether an expression indexes an array with more elements than int32 counts.

    JAX adds the size of the axis to negative indices, which have 32 bits unless 64-bit types are
    enabled (`_normalize_index` in `jax/_src/numpy/indexing.py`). A number that is written in the
    expression is no such size.
    """
    if node is None:
        return False
    if any(isinstance(part, ast.Constant) and part.value == number for part in ast.walk(node)):
        return False
    match node:
        case (
            ast.Subscript()
            | ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at"))))
        ):
            return True
        case _:
            return False


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation | None]:
    """Yield arithmetic that certainly wraps, and forms that wrap for ordinary values."""
    flow = view.flow
    integers = Integers(view, flow, Intervals(flow, view.exact))
    for step in flow.steps.values():
        if step.backward or step.span is None:
            continue
        if step.primitive in _PRIMITIVES and integers.is_of_integers(step):
            yield _of_equation(integers, step)


def _of_equation(integers: Integers, step: Step) -> Violation | None:
    """Return what is wrong with one equation."""
    dtype = integers.dtype(step)
    usual = bits_of(dtype) >= 32 and not dtype.startswith("uint")
    if usual and certain_overflow(integers, step) is None:
        return None  # most integers have 32 bits and are not known: spare reading the text
    text = integers.view.quote(step.path)
    if (node := parsed(text)) is None:
        return None
    if (violation := literal_too_large(integers, step, node)) is not None:
        return violation
    if not _is_written(text, step.primitive):
        return None
    violation = (
        certain_overflow(integers, step)
        or small_accumulator(integers, step)
        or unsigned_difference(integers, step, node)
    )
    return None if violation is None or is_meant(integers, step) else violation


def _is_written(text: str, primitive: str) -> bool:
    return primitive in _WRITTEN and is_written(text, *_WRITTEN[primitive])


# Find sums of small integers in their own dtype.

_ACCUMULATES = frozenset({"reduce_sum", "cumsum", "dot_general"})
_FEWEST = 4
"""Elements of a sum, a choice: of fewer, such as channels, the user knows the range."""


def small_accumulator(integers: Integers, step: Step) -> Violation | None:
    """Find sums and products of many small integers in their own dtype."""
    if step.primitive not in _ACCUMULATES or not integers.is_small(step):
        return None
    dtype, interval = integers.dtype(step), integers.intervals.result(step)
    least, most = integers.limits(step)
    if interval is None or (least <= interval.least and interval.most <= most):
        return None
    if step.primitive == "dot_general":
        matrices = product(step)
        if matrices is not None and not matrices.contracted[0]:
            return None  # an outer product adds nothing up
        accumulator = str(step.parameter("preferred_element_type") or dtype)
        if accumulator != dtype or not all(map(integers.is_any, step.operands)):
            return None
        return Violation(
            f"{dtype} matrix product is accumulated in {dtype}",
            step.path,
            help="pass `preferred_element_type=jnp.int32`",
            notes=(holds_note(dtype),),
        )
    length = max(integers.flow.value(step.operands[0]).shape, default=0)
    if length < _FEWEST:
        return None
    cumsum = ("`jnp.cumsum` keeps small dtypes, unlike `jnp.sum`",)
    return Violation(
        f"{integers.quoted(step)} accumulates {length:,} elements in {dtype}",
        step.path,
        help="pass `dtype=jnp.int32`",
        notes=(holds_note(dtype), *(cumsum if step.primitive == "cumsum" else ())),
    )


# Find arithmetic of known integers whose result does not fit in its dtype.


def certain_overflow(integers: Integers, step: Step) -> Violation | None:
    """Arithmetic of known integers whose result does not fit."""
    dtype, (least, most) = integers.dtype(step), integers.limits(step)
    interval = integers.intervals.result(step) if step.primitive in _WRITTEN else None
    if interval is None or (interval.high <= most and interval.low >= least):
        return None
    wraps, help = f"overflows {dtype}", wider_help(dtype)
    if interval.high > most:
        reaches = f"it reaches {figure(interval.high)}"
    else:
        reaches = f"it falls to {figure(interval.low)}"
        if least == 0:
            wraps, help = f"wraps below zero in {dtype}", SIGNED
    message = f"{integers.quoted(step)} {wraps}: {reaches}"
    return Violation(message, step.path, help=help, notes=(holds_note(dtype),))


# The fix: take the difference of two unsigned arrays that does not wrap around.


@RULE.corrects("`jnp.maximum(a, b) - jnp.minimum(a, b)` instead of `jnp.abs(a - b)` (unsafe)")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `maximum(a, b) - minimum(a, b)` for `abs(a - b)`.

    The values change on purpose.
    """
    match context.node, next(context.around(context.node), None):
        case ast.BinOp(op=ast.Sub(), left=a, right=b), ast.Call(keywords=[], args=[_]) as call:
            function, jnp = context.called(call.func).rpartition(".")[2], context.jnp
            if jnp and function in ("abs", "absolute"):
                pair = f"({context.text(a)}, {context.text(b)})"
                text = context.bracketed(call, f"{jnp}.maximum{pair} - {jnp}.minimum{pair}")
                yield context.replaced(
                    call, text, "Subtract the smaller from the larger", same=False
                )
