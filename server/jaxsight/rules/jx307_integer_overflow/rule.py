"""JX307: integer arithmetic that wraps around.

JAX integers wrap silently, and arithmetic keeps small dtypes: `uint8 + uint8` is uint8, and so are
`jnp.cumsum` and matrix products of uint8, while NumPy accumulates sums in 64 bits. Code that wraps
on purpose (hashes, generators of random numbers, bit masks) is not reported.
"""

# Longer than most rules: results that certainly wrap, small accumulators and unsigned differences
# are three searches.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx307_integer_overflow.integers import (
    SIGNED,
    Integers,
    bits_of,
    figure,
    holds_note,
    is_meant,
    wider_help,
)
from jaxsight.rules.program.guards import Operators, is_written
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.interval import limits
from jaxsight.rules.program.matrices import product
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import Expression, name_of, parsed, same, stores_of
from jaxsight.wire.program import Step

# Find absolute values of differences of unsigned integers.

_ABSOLUTE = frozenset({"abs", "absolute", "fabs"})


def unsigned_difference(integers: Integers, step: Step, node: Expression) -> Violation | None:
    """`abs(a - b)` of unsigned integers."""
    dtype = integers.dtype(step)
    if step.primitive != "sub" or not dtype.startswith("uint"):
        return None
    a, b = step.operands
    first, second = integers.intervals.of(a), integers.intervals.of(b)
    if first is None or second is None or first.least >= second.most:
        return None
    is_any = integers.is_input(a) and (second.one is not None or integers.is_input(b))
    if not is_any or not _is_absolute(integers, step, node):
        return None
    return Violation(
        f"`abs` has no effect on the unsigned difference {integers.quoted(step)}",
        step.path,
        help="use `jnp.maximum(a, b) - jnp.minimum(a, b)`, or convert both to a signed type first",
        notes=(f"{dtype} differences below zero wrap around",),
    )


def _is_absolute(integers: Integers, step: Step, node: Expression) -> bool:
    """Whether the user takes the absolute value of an expression, which is no equation."""
    around = integers.view.around(step.path)
    match next((outer for inner, outer in pairwise(around) if same(inner, node)), None):
        case ast.Call() as call:
            return name_of(call) in _ABSOLUTE
        case ast.Assign(targets=[ast.Name(id=name)]):
            functions = (each for each in around if isinstance(each, ast.FunctionDef))
            function = next(functions, ast.Module([], []))
            return len(stores_of(name, function)) == 1 and any(
                isinstance(node, ast.Call)
                and name_of(node) in _ABSOLUTE
                and any(isinstance(a, ast.Name) and a.id == name for a in node.args)
                for node in ast.walk(function)
            )
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
        if step.primitive in _WRITTEN and integers.is_of_integers(step):
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
    if not is_written(text, *_WRITTEN[step.primitive]):
        return None
    violation = (
        certain_overflow(integers, step)
        or small_accumulator(integers, step)
        or unsigned_difference(integers, step, node)
    )
    return None if violation is None or is_meant(integers, step) else violation


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
    interval = integers.intervals.result(step)
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
    match context.node, next(context.ancestors(context.node), None):
        case ast.BinOp(op=ast.Sub(), left=a, right=b), ast.Call(keywords=[], args=[_]) as call:
            function, jnp = context.called(call.func).rpartition(".")[2], context.jnp
            if jnp and function in ("abs", "absolute"):
                pair = f"({context.text(a)}, {context.text(b)})"
                text = context.bracketed(call, f"{jnp}.maximum{pair} - {jnp}.minimum{pair}")
                yield context.replaced(
                    call, text, "Subtract the smaller from the larger", same=False
                )
