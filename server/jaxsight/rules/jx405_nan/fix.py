"""JX405: guard the operand that a `where` hides with a second `where`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.fixing.syntax import same
from jaxsight.rules.wording import quoted

_SAFE = ("1.0", "0.5", "1")
"""Values for the hidden elements: each unsafe function is safe for one of them."""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `where(ok, f(where(ok, x, 1)), 0)` for `where(ok, f(x), 0)`.

    The inner `where` gets a name if a statement fits before the expression.
    """
    for call in context.find(ast.Call):
        if context.called(call.func) not in ("jax.numpy.where", "jax.lax.select") or call.keywords:
            continue
        if len(call.args) != 3:
            continue
        condition, *cases = call.args
        for case in (0, 1):
            for compared in _compared(context, context.value_of(condition)):
                uses = [node for node in ast.walk(cases[case]) if same(node, compared)]
                if uses:
                    yield from _guarded(context, call, compared, uses, case)
        return


def _compared(context: FixContext, condition: ast.expr) -> Iterator[ast.expr]:
    """Yield what a condition compares: the sides of comparisons, and the names of variables."""
    reported: set[str] = set()
    modules = set(context.imports.values())
    for node in ast.walk(condition):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        for side in (
            *sides,
            *([node] if isinstance(node, ast.Name) and node.id not in modules else []),
        ):
            if not isinstance(side, ast.Constant) and ast.dump(side) not in reported:
                reported.add(ast.dump(side))
                yield side


def _guarded(
    context: FixContext, call: ast.Call, compared: ast.expr, uses: list[ast.AST], case: int
) -> Iterator[Candidate]:
    condition, value = context.text(call.args[0]), context.text(compared)
    statement = context.statement(call)
    title = f"Guard {quoted(value, most=30)} with a second `where`"
    for safe in _SAFE:
        pair = f"{value}, {safe}" if case == 0 else f"{safe}, {value}"
        # `lax.select` needs arrays of one shape, so `where` selects the number.
        where = f"{context.jnp}.where" if context.jnp else context.text(call.func)
        guarded = f"{where}({condition}, {pair})"
        if statement is None:
            name = guarded
            edits = []
        else:
            name = context.fresh("safe")
            edits = [context.before(statement, f"{name} = {guarded}")]
        edits += [context.replace(use, name) for use in uses if isinstance(use, ast.expr)]
        yield Candidate(title, tuple(edits))


REMEDY = Remedy.correcting("a second `where` that makes the operand safe", candidates)
