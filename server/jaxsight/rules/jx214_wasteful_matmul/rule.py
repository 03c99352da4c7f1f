"""JX214: a product of matrices computes much that is zero, thrown away or better associated."""

# Longer than most rules: four wasteful products have figures, words and fixes of their own.

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.matrices import (
    MOVES,
    Product,
    argument,
    factors,
    is_diagonal,
    is_identity,
    is_mask,
    multiplies,
    product,
    readers,
    unmoved,
    written,
)
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import LAUNCHED, Rule, Violation
from jaxsight.rules.text.expressions import parsed
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Matrix product with more work than its result needs.", severity="warning")

LEAST = 8
"""Rows of a diagonal matrix, or of a product whose diagonal is used."""
LEAST_SAVED = 1 << 20
"""Floating-point operations that another order of a chain must save."""
TIMES = 4
"""How many times as many operations a chain must take as in its other order."""

_DIAGONALS = frozenset({"diag", "diagonal", "trace", "einsum"})
_CASTS = frozenset({"convert_element_type", "stop_gradient"})
_TURNS = _CASTS | {"transpose"}


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation | None]:
    """Yield products of matrices that a few operations replace."""
    for step in view.flow.forward_steps("dot_general", "select_n", "cond", "gather"):
        read = product(step)
        if read is None:
            yield _diagonal_of(view, step)
        elif multiplies(view, step.path):
            yield _with_diagonal(view, read) or _in_order(view, read)


def _with_diagonal(view: ProgramView, read: Product) -> Violation | None:
    """Return what to say of a product with a diagonal or identity matrix."""
    flow, step = view.flow, read.step
    for side, number in enumerate(step.operands):
        shape, other = flow.value(number).shape, step.operands[1 - side]
        rank = len(shape)
        if rank < 2 or shape[-1] < LEAST or read.contracted[side] not in ((rank - 1,), (rank - 2,)):
            continue
        if is_diagonal(flow, other) or not is_diagonal(flow, number):
            continue
        if not (maker := _maker(view, number)):
            return None
        pair = factors(view.quote(step.path))
        matrix = written(pair[1 - side], "x") if pair is not None else "x"
        entries = argument(maker, ("diag", "diagflat"), "diagonal")
        kind = "a diagonal matrix"
        if is_identity(flow, number):
            kind, help = "the identity matrix", "use the other factor itself"
        elif len(flow.value(other).shape) == 1:
            help = f"multiply by the diagonal: `{entries} * {matrix}`"
        elif side == 0:
            help = f"scale the rows: `{entries}[:, None] * {matrix}`"
        else:
            help = f"scale the columns: `{matrix} * {entries}`"
        return Violation(
            f"product with {kind} takes {_flop(read.flop(flow))}, mostly multiplications by zero",
            step.path,
            help=help,
            notes=(f"of the {shape[-1]}×{shape[-1]} matrix only the diagonal is not zero",),
        )
    return None


def _maker(view: ProgramView, number: int) -> str:
    """Return what the user wrote that makes a diagonal matrix; empty where a library made it."""
    flow, step = view.flow, view.flow.producer(number)
    for _ in range(10):
        if step is None:
            break
        text = view.quote(step.path)
        if re.search(r"\b(?:diag|diagflat|eye|identity)\(", text):
            return text
        step = next(filter(None, map(flow.producer, step.operands)), None)
    return flow.value(number).said if is_identity(flow, number) else ""


def _in_order(view: ProgramView, outer: Product) -> Violation | None:
    """Return what to say of a chain of products that takes far less work in another order."""
    flow, step = view.flow, outer.step
    first = tuple(range(len(outer.batch[0])))
    if outer.batch != (first, first):  # the axes of the batch do not lead
        return None
    for side in (0, 1):
        inner = product(unmoved(flow, step.operands[side], _TURNS))
        if inner is None or inner.batch != outer.batch or inner.step.backward:
            continue
        if inner.step.span == step.span or not multiplies(view, inner.step.path):
            continue
        if readers(flow, inner.step.results[0], _TURNS) != [step]:
            continue
        if flow.parent.get(inner.step.path) is not flow.parent.get(step.path):
            continue
        now, reordered = _costs(flow, outer, inner, side) or (0, 0)
        if now - reordered < LEAST_SAVED or now < TIMES * reordered:
            continue
        if any(_is_solution(flow, number) for number in inner.step.operands):
            continue
        form = _other_order(view.quote(step.path), side)
        return Violation(
            f"chain of products takes {_flop(now)}, in the other order {_flop(reordered)}",
            step.path,
            help=f"write `{form}`",
            notes=("XLA keeps the order of products that the program has",),
            related=()
            if view.quote(inner.step.path) in view.quote(step.path)
            else ((inner.step.path, "computed first"),),
        )
    return None


def _other_order(expression: str, side: int) -> str:
    """Return a chain in the other order, as short as its factors allow."""
    outer = factors(expression)
    inner = factors(ast.unparse(outer[side])) if outer is not None else None
    a, b, c = "abc"
    if outer is not None and inner is not None:
        three = (*inner, outer[1]) if side == 0 else (outer[0], *inner)
        a, b, c = map(written, three, "abc")
    return f"{a} @ ({b} @ {c})" if side == 0 else f"({a} @ {b}) @ {c}"


def _is_solution(flow: Flow, number: int) -> bool:
    """Whether a factor is an inverse, of which JX213 speaks."""
    maker = unmoved(flow, number, MOVES | _CASTS)
    return maker is not None and maker.primitive in ("custom_linear_solve", "triangular_solve")


def _costs(flow: Flow, outer: Product, inner: Product, side: int) -> tuple[int, int] | None:
    """Return the operations of two products, and of the same with the other factor first.

    `(a @ b) @ c` sums over axes of `b`, or over axes of `a`, in which case it is no chain.
    """
    step = outer.step
    batch = len(inner.batch[0])
    inner_shape = flow.value(inner.step.results[0]).shape
    free = [
        flow.value(inner.step.operands[index]).shape[axis]
        for index in (0, 1)
        for axis in inner.free(flow, index)
    ]
    if list(inner_shape[batch:]) != free:
        return None
    axes, turned = outer.contracted[side], flow.producer(step.operands[side])
    while turned is not None and turned.primitive in _TURNS:
        if turned.primitive == "transpose":
            axes = tuple(turned.numbers("permutation")[axis] for axis in axes)
        turned = flow.producer(turned.operands[0])
    boundary = batch + len(inner.free(flow, 0))
    sides = {int(axis >= boundary) for axis in axes} or {1}
    if len(sides) > 1:
        return None
    (shared,) = sides
    far, near = inner.columns(flow, 1 - shared), inner.step.operands[shared]
    columns = outer.columns(flow, 1 - side)
    summed = inner.flop(flow) // (2 * max(1, flow.value(inner.step.results[0]).elements))
    first = 2 * flow.value(near).elements * columns
    second = 2 * far * summed * columns * math.prod(inner_shape[:batch])
    return inner.flop(flow) + outer.flop(flow), first + second


def _diagonal_of(view: ProgramView, step: Step) -> Violation | None:
    """Return what to say of a product of which only the diagonal is read."""
    flow = view.flow
    if view.called(step) not in _DIAGONALS:
        return None
    for number in step.operands:
        maker = unmoved(flow, number, MOVES | _CASTS)
        read = product(maker)
        if read is None or maker is None or not multiplies(view, maker.path):
            continue
        if any(_is_solution(flow, factor) for factor in maker.operands):
            continue
        shape = flow.value(number).shape
        if len(shape) < 2 or min(shape[-2:]) < LEAST or len(read.contracted[0]) != 1:
            continue
        if step.primitive == "select_n" and not (
            is_mask(flow, step.operands[0]) and flow.literal(step.operands[1]) == 0
        ):
            continue
        used = readers(flow, maker.results[0], MOVES | _CASTS) or []
        if not used or {user.span for user in used} != {step.span}:
            continue
        full, needed = read.flop(flow), read.flop(flow) // max(shape[-2:])
        use, name, form = "diagonal", "diag", "jnp.sum(a * b.T, axis=1)"
        if view.called(step) == "trace":
            use, name, form = "trace", "trace", "jnp.sum(a * b.T)"
        return Violation(
            f"only the {use} of a product is used: {_flop(needed)} of {_flop(full)}",
            step.path,
            help=f"compute the diagonal alone: `{form}` for `jnp.{name}(a @ b)`",
            related=((maker.path, "the product"),),
        )
    return None


def _flop(count: int) -> str:
    """Return a number of operations as people read it: `1.6 GFLOP`, `262 kFLOP`."""
    for unit, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if (amount := count / unit) >= 1:
            return f"{amount:.0f} {prefix}FLOP" if amount >= 100 else f"{amount:.2g} {prefix}FLOP"
    return f"{count} FLOP"


# The fix: scale by a diagonal, read a diagonal directly, or multiply in the other order.

_SCALE = "Scale by the diagonal"
_DROP, _REORDER = "Drop the product with the identity matrix", "Multiply in the other order"
_ROWS = (
    ("eye(*n) @ a | a @ eye(*n)", "{a}", _DROP),
    ("diag(d) @ a", "{(d)}{rows} * {(a)}", _SCALE),
    ("a @ diag(d)", "{(a)} * {(d)}", _SCALE),
    ("trace(a @ b)", "jnp.sum({(a)} * {b^T})", "Compute the trace alone"),
    (
        "diag(a @ b) | diagonal(a @ b)",
        "jnp.sum({(a)} * {b^T}, axis=1)",
        "Compute the diagonal alone",
    ),
    ("(a @ b) @ c", "{(a)} @ ({(b)} @ {(c)})", _REORDER),
    ("a @ (b @ c)", "({(a)} @ {(b)}) @ {(c)}", _REORDER),
)
"""What is written, what to write instead, and the title of that; `{rows}` turns a diagonal that
scales the rows of a matrix.
"""


@RULE.fixes("the same with fewer operations", trades=frozenset({LAUNCHED}))
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield other forms of the first expression that is one of the wasteful ones."""
    patterns = SyntaxPatterns(context, looks_up=True)
    for node in context.nodes if context.jnp else ():
        is_proposed = False
        for pattern, template, title in _ROWS if isinstance(node, ast.expr) else ():
            assert isinstance(node, ast.expr)
            found = patterns.at(node, pattern)
            if found is None or found.get("axes"):
                continue
            is_proposed = True
            rows = "" if patterns.rank(found.get("a", "")) == 1 else "[:, None]"
            text = patterns.filled(template, {**found, "rows": rows})
            if not isinstance(parsed(text), ast.Call):
                text = context.bracketed(node, text)
            yield Candidate(title, (context.replace(node, text),))
        if is_proposed:
            return
