"""JX401: write both results of an `if` on a traced value as one expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.fixing import constants
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.in_place import in_place
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.source.text import Edit, Range


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `jnp.where` and `jax.lax.cond` for an `if`, and `jnp` in place of a NumPy function."""
    conditional = _conditional(context)
    if conditional is not None and context.jnp:
        where, cond = f"{context.jnp}.where", f"{context.lax}.cond"
        for title, choice, imports in (
            (f"Select with `{where}`", f"{where}({{}}, {{}}, {{}})", ()),
            (
                f"Branch with `{cond}`",
                f"{cond}({{}}, lambda: {{}}, lambda: {{}})",
                context.jax_import(),
            ),
        ):
            edit = _rewritten(context, conditional, choice)
            if edit is not None:
                # The edit drops comments, which only the user may decide.
                safe = "#" not in context.module.slice_text(edit.range)
                yield Candidate(title, (*imports, edit), safe)
        return
    yield from constants.by_jnp(context)
    yield from in_place(context)


def _conditional(context: FixContext) -> ast.If | ast.IfExp | None:
    """Return the conditional whose test the finding is about."""
    extent = context.finding.range
    for node in (context.node, *context.around(context.node)):
        if isinstance(node, ast.If | ast.IfExp):
            test = context.range(node.test)
            if test.start <= extent.start and extent.end <= test.end:
                return node
    # Python has no positions for the parts of a comprehension.
    inside = list(context.find(ast.IfExp))
    return inside[0] if len(inside) == 1 else None


def _rewritten(context: FixContext, conditional: ast.If | ast.IfExp, choice: str) -> Edit | None:
    """Return the edit that writes both results by a choice: `jnp.where({}, {}, {})`."""
    if isinstance(conditional, ast.IfExp):
        values = map(context.text, (conditional.body, conditional.orelse))
        return context.replace(
            conditional, choice.format(_test(context, conditional.test), *values)
        )
    if not context.begins_line(conditional):  # an `elif`
        parent = context.parents.get(conditional)
        return _rewritten(context, parent, choice) if isinstance(parent, ast.If) else None
    after = _after(context, conditional)
    value = _returned(context, [conditional, *after], choice)
    if value is not None:
        last: ast.stmt = conditional
        if not _ends([conditional]):
            last = next((statement for statement in after if _ends([statement])), conditional)
        return Edit(
            Range(context.range(conditional).start, context.range(last).end), f"return {value}"
        )
    assigned = _assigned(context, conditional, choice)
    return context.replace(conditional, assigned) if assigned is not None else None


def _after(context: FixContext, node: ast.stmt) -> Sequence[ast.stmt]:
    parent = context.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return ()


def _ends(block: Sequence[ast.stmt]) -> bool:
    """Whether a block always returns."""
    match block:
        case [ast.Return()]:
            return True
        case [ast.If(body=body, orelse=orelse)]:
            return _ends(body) and _ends(orelse)
        case _:
            return False


def _returned(context: FixContext, block: Sequence[ast.stmt], choice: str) -> str | None:
    """Return the value that a block returns, as one expression."""
    match block:
        case [ast.Return(value=ast.expr() as value), *_]:
            return context.text(value)
        case [ast.If(test=test, body=body, orelse=orelse), *after]:
            yes = _returned(context, [*body, *after], choice)
            no = _returned(context, [*orelse, *after], choice)
            return choice.format(_test(context, test), yes, no) if yes and no else None
        case _:
            return None


def _assigned(context: FixContext, conditional: ast.If, choice: str) -> str | None:
    """Return one assignment for `y = …` in each branch, or in one of them."""
    match conditional.body, conditional.orelse:
        case (
            [ast.Assign(targets=[ast.Name(id=name)], value=yes)],
            [ast.Assign(targets=[ast.Name(id=other_name)], value=no)],
        ) if name == other_name:
            no_text = context.text(no)
        case ([ast.Assign(targets=[ast.Name(id=name)], value=yes)], []):
            no_text = name
        case _:
            return None
    return f"{name} = {choice.format(_test(context, conditional.test), context.text(yes), no_text)}"


def _test(context: FixContext, test: ast.expr) -> str:
    """Return a condition without `and`, `or` and `not`."""
    match test:
        case ast.BoolOp(op=op, values=values):
            joint = " & " if isinstance(op, ast.And) else " | "
            return joint.join(f"({_test(context, value)})" for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"{context.jnp}.logical_not({_test(context, operand)})"
        case _:
            return context.text(test)


REMEDY = Remedy(
    "`jnp.where` or `jax.lax.cond` for an `if` that returns or assigns; `jnp` instead of `np`",
    candidates,
)
