"""JX405: a value is NaN, or a `where` hides an operand whose derivative is NaN."""

# Longer than most rules: it runs the equations of a selection at points, with a value for each
# primitive, and undoes them to find the points.

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx405_nan.points import Gradients, Point
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule, is_flat
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import same
from jaxsight.rules.wording import MOST, quoted
from jaxsight.source.text import Edit
from jaxsight.wire.program import Step

RULE = Rule(__name__, "NaN, or a `where` whose gradient may be NaN.", severity="warning")

_SAFE = "jnp.where(ok, f(jnp.where(ok, x, 1.0)), 0.0)"
_TRIED = 4
"""Selections of one expression that are looked at: an unrolled loop has many."""
_NAMES = 3
"""Arguments that a message names."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize the `FloatingPointError` of JAX's NaN and infinity checkers."""
    if not error.is_a("FloatingPointError"):
        return None
    kind = "an infinite value" if "(inf)" in error.message else "NaN"
    return Violation(
        f"{error.quoted('this function')} returns {kind}",
        help=f"make the operand safe, not only the result: `{_SAFE}`",
        notes=(f"JAX's checker says: {error.said}",),
    )


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield selections that hide a case by a condition on `x` where its derivative by `x` is NaN.

    Functions with derivative rules of their own (`custom_jvp`, `custom_vjp`) are trusted. What is
    not differentiated is skipped: integers, `stop_gradient`, a selection that only comparisons
    read.
    """
    flow, gradients = view.flow, Gradients(view.flow)
    found: dict[str, tuple[Step, Point]] = {}
    calls: list[ast.AST] = []
    tried: Counter[object] = Counter()
    for select in reversed(flow.steps.values()):
        if select.primitive != "select_n" or len(select.operands) != 3 or select.backward:
            continue
        if not view.wrote(select.path, "where", "select"):
            continue
        if has_rule(view, select) or not _is_differentiated(flow, select):
            continue
        around = view.around(select.path)
        tried[select.span] += 1
        if tried[select.span] > _TRIED or any(outer in around for outer in calls):
            continue  # one of several nested selections, or of many copies, is enough
        point = gradients.point(select)
        if point is not None:
            found[point.cause.path] = select, point  # the first one that hides it counts
            calls += [node for node in around if isinstance(node, ast.Call)][:1]
    yield from (_violation(view, *hidden) for hidden in found.values())


def _violation(view: ProgramView, select: Step, point: Point) -> Violation:
    form = "jnp.where(bad, 0.0, f(jnp.where(bad, 1.0, x)))" if point.holds else _SAFE
    expression = quoted(view.quote(point.cause.path), "the operand")
    derivative = "infinite, and 0 times that is NaN" if point.is_infinite else "NaN"
    where = f"where the condition is {'true' if point.holds else 'false'}"
    values = ", ".join(f"`{name} = {number:g}`" for name, number in point.at[:_NAMES])
    message = f"gradient of `where` is NaN at {values}"
    if not 0 < len(point.at) <= _NAMES or len(message) > MOST:
        message = f"gradient of `where` may be NaN {where}"
    elif len(f"{message}, {where}") <= MOST:
        message += f", {where}"
    return Violation(
        message,
        select.path,
        help=f"make the operand safe: `{form}`",
        notes=(f"{expression} is differentiated there too: its derivative is {derivative}",),
        related=((point.cause.path, "its derivative is infinite or NaN"),),
    )


def _is_differentiated(flow: Flow, select: Step) -> bool:
    """Whether a selection is inexact, and something differentiable reads it."""
    number = select.results[0]
    users = flow.used_by(number)
    if not flow.value(number).is_inexact:
        return False
    if flow.of(number) in flow.outputs or not users:
        return True
    return not all(is_flat(flow, user) for user in users)


# The fix: guard the operand that a `where` hides with a second `where`.

_SAFE_VALUES = ("1.0", "0.5", "1")
"""Values for the hidden elements: each unsafe function is safe for one of them."""


@RULE.corrects("a second `where` that makes the operand safe")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `where(ok, f(where(ok, x, 1)), 0)` for `where(ok, f(x), 0)`.

    The inner `where` gets a name if a statement fits before the expression.
    """
    for call in context.calls("jax.numpy.where", "jax.lax.select"):
        if call.keywords or len(call.args) != 3:
            continue
        condition, *cases = call.args
        for case in (0, 1):
            for compared in _compared(context, context.value_of(condition)):
                uses = [node for node in ast.walk(cases[case]) if same(node, compared)]
                if uses:
                    yield from _guarded(context, call, compared, uses, case)
        return


def _compared(context: FixContext, condition: ast.expr) -> list[ast.expr]:
    """Return what a condition compares: the sides of comparisons, and the names of variables."""
    modules = set(context.imports.values())
    compared: dict[str, ast.expr] = {}
    for node in ast.walk(condition):
        sides: list[ast.expr] = []
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
            case ast.Name(id=name) if name not in modules:
                sides = [node]
        for side in sides:
            if not isinstance(side, ast.Constant):
                compared.setdefault(ast.dump(side), side)
    return list(compared.values())


def _guarded(
    context: FixContext, call: ast.Call, compared: ast.expr, uses: list[ast.AST], case: int
) -> Iterator[Candidate]:
    condition, value = context.text(call.args[0]), context.text(compared)
    statement = context.statement(call)
    title = f"Guard {quoted(value, most=30)} with a second `where`"
    for safe in _SAFE_VALUES:
        pair = f"{value}, {safe}" if case == 0 else f"{safe}, {value}"
        # `lax.select` needs arrays of one shape, so `where` selects the number.
        where = f"{context.jnp}.where" if context.jnp else context.text(call.func)
        name, edits = f"{where}({condition}, {pair})", list[Edit]()
        if statement is not None:
            name = context.fresh("safe")
            edits.append(context.before(statement, f"{name} = {where}({condition}, {pair})"))
        edits += [context.replace(use, name) for use in uses if isinstance(use, ast.expr)]
        yield Candidate(title, tuple(edits))
