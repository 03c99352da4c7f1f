"""JX405: a `where` that hides an unsafe operand: the operand is made safe too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, same

CODE = "JX405"

_SAFE = ("1.0", "0.5", "1")
"""What stands where the condition does not hold: one of them is in the domain of every unsafe function."""


def candidates(asked: Asked) -> Iterator[Candidate]:
    """`where(ok, f(x), 0)` as `where(ok, f(where(ok, x, 1)), 0)`, with a name for the inner one where there is room for a statement."""
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        if asked.called(call.func) not in ("jax.numpy.where", "jax.lax.select") or call.keywords:
            continue
        if len(call.args) != 3:
            continue
        condition, *cases = call.args
        for case in (0, 1):
            for compared in _compared(condition):
                uses = [node for node in ast.walk(cases[case]) if same(node, compared)]
                if uses:
                    yield from _guarded(asked, call, compared, uses, case)
        return


def _compared(condition: ast.expr) -> Iterator[ast.expr]:
    """What a condition is about: the sides of comparisons, and the names in them."""
    told: set[str] = set()
    for node in ast.walk(condition):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        for side in (*sides, *([node] if isinstance(node, ast.Name) else [])):
            if not isinstance(side, ast.Constant) and ast.dump(side) not in told:
                told.add(ast.dump(side))
                yield side


def _guarded(
    asked: Asked, call: ast.Call, compared: ast.expr, uses: list[ast.AST], case: int
) -> Iterator[Candidate]:
    condition, value = asked.text(call.args[0]), asked.text(compared)
    statement = asked.statement(call)
    title = f"Make `{value}` safe where the condition does not hold"
    for safe in _SAFE:
        pair = f"{value}, {safe}" if case == 0 else f"{safe}, {value}"
        guarded = f"{asked.text(call.func)}({condition}, {pair})"
        if statement is None:
            name = guarded
            edits = []
        else:
            name = asked.fresh("safe")
            edits = [asked.before(statement, f"{name} = {guarded}")]
        edits += [asked.replace(use, name) for use in uses if isinstance(use, ast.expr)]
        yield Candidate(title, tuple(edits))
