"""Fix JX209: turn a Python loop over `range` into a `fori_loop`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.source.text import Edit, Position, Range

_REFUSED = (
    *(ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Nonlocal, ast.Global),
)
"""Statements that a body of `fori_loop` cannot have."""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Rewrite `for i in range(…)`; the names that the body assigns become the loop's carry."""
    nodes = context.node, *context.around(context.node)
    loop = next((node for node in nodes if isinstance(node, ast.For)), None)
    function = context.function(loop)
    if loop is None or function is None or loop.orelse or not context.begins_line(loop):
        return
    bounds = _bounds(context, loop)
    if bounds is None or not isinstance(loop.target, ast.Name):
        return
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(
        isinstance(node, _REFUSED)
        # `self.x = …`, `table[i] = …`
        or (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store))
        for node in inside
    ):
        return
    state = _state(function, loop)
    if not state or loop.target.id in state:
        return
    text = _written(context, loop, state, *bounds)
    range_ = Range(context.range(loop).start, context.range(loop).end)
    head = Range(range_.start, context.range(loop.body[0]).start)
    yield Candidate(
        f"Loop over `{loop.target.id}` with `{context.lax}.fori_loop`",
        (*context.jax_import(), Edit(range_, text)),
        safe="#" not in context.module.slice_text(head) and all(map(context.is_pure, loop.body)),
    )


def _bounds(context: FixContext, loop: ast.For) -> tuple[str, str] | None:
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[stop], keywords=[]):
            return "0", context.text(stop)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
            return context.text(start), context.text(stop)
        case _:
            return None


def _state(function: ast.AST, loop: ast.For) -> list[str]:
    """Return the names that the loop carries, in the order of the text.

    An iteration takes them from the one before, or they are read after the loop.
    """
    stored = _names(loop.body, ast.Store)
    after = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.lineno > (loop.end_lineno or 0)
    }
    first = _read_first(loop.body)
    return [name for name in stored if name in after or name in first]


def _names(body: Sequence[ast.stmt], kind: type[ast.expr_context]) -> list[str]:
    nodes = [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, kind)
    ]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in nodes))


def _read_first(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that are read before they are assigned.

    Names that a compound statement assigns count as read: it may not execute the assignment.
    """
    stored: set[str] = set()
    names: set[str] = set()
    for statement in body:
        reads = set(_names([statement], ast.Load))
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            reads.add(statement.target.id)
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
            reads |= set(_names([statement], ast.Store))
        names |= reads - stored
        stored |= set(_names([statement], ast.Store))
    return names


def _written(context: FixContext, loop: ast.For, state: list[str], start: str, stop: str) -> str:
    indent = context.indent(loop)
    assert isinstance(loop.target, ast.Name)
    first = context.range(loop.body[0]).start
    deeper = context.module.line(first.line)[: first.column]
    if deeper.strip():  # on the line of the `for`
        deeper = indent + "    "
    name = context.fresh("body" if "body" not in context.names else f"{loop.target.id}_body")
    last = context.range(loop.body[-1]).end
    inside = context.module.slice_text(Range(first, Position(last.line, last.column)))
    carry = state[0] if len(state) == 1 else context.fresh("carry")
    lines = [f"def {name}({loop.target.id}, {carry}):"]
    if len(state) > 1:
        lines.append(f"{deeper}{', '.join(state)} = {carry}")
    initial = state[0] if len(state) == 1 else f"({', '.join(state)})"
    lines += [
        deeper + inside,
        f"{deeper}return {', '.join(state)}",
        "",
        f"{indent}{', '.join(state)} = {context.lax}.fori_loop({start}, {stop}, {name}, {initial})",
    ]
    return "\n".join(lines)


# Less to trace and compile, for a loop that launches its kernels in each iteration.
REMEDY = Remedy(
    "`jax.lax.fori_loop`, for a loop over `range`",
    candidates,
    timed=True,
    trades=figures.ALL,
)
