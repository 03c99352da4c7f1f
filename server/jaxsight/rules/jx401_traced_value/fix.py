"""JX401: write both results of an `if` on a traced value as one expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Range
from jaxsight.rules.jx101_captured_constant import fix as jx101
from jaxsight.rules.jx416_item_assignment import fix as jx416


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `jnp.where` and `jax.lax.cond` for an `if`, and `jnp` in place of a NumPy function."""
    found = _conditional(asked)
    if found is not None and asked.jnp:
        for title, write in (
            (f"Select with `{asked.jnp}.where`", _Where(asked)),
            (f"Branch with `{asked.lax}.cond`", _Cond(asked)),
        ):
            edit = _rewritten(asked, found, write)
            if edit is not None:
                imports = asked.jax_import() if isinstance(write, _Cond) else ()
                # The edit drops comments, which only the user may decide.
                safe = "#" not in asked.module.slice_text(edit.range)
                yield Candidate(title, (*imports, edit), safe)
        return
    yield from jx101.by_jnp(asked)
    yield from jx416.in_place(asked)


class _Where:
    """Compute both values, and select one."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def __call__(self, test: str, yes: str, no: str) -> str:
        return f"{self._asked.jnp}.where({test}, {yes}, {no})"


class _Cond(_Where):
    """Run one branch."""

    def __call__(self, test: str, yes: str, no: str) -> str:
        return f"{self._asked.lax}.cond({test}, lambda: {yes}, lambda: {no})"


def _conditional(asked: Asked) -> ast.If | ast.IfExp | None:
    """Return the conditional whose test the finding is about."""
    for node in asked.nodes[:1]:
        for each in (node, *asked.around(node)):
            if isinstance(each, ast.If | ast.IfExp):
                test = asked.range(each.test)
                place = asked.finding.range
                if test.start <= place.start and place.end <= test.end:
                    return each
    # Python has no positions for the parts of a comprehension.
    inside = list(asked.find(ast.IfExp))
    return inside[0] if len(inside) == 1 and isinstance(inside[0], ast.IfExp) else None


def _rewritten(asked: Asked, found: ast.If | ast.IfExp, write: _Where) -> Edit | None:
    if isinstance(found, ast.IfExp):
        text = write(_test(asked, found.test), asked.text(found.body), asked.text(found.orelse))
        return asked.replace(found, text)
    if not asked.begins_line(found):
        return _elif(asked, found, write)
    after = _after(asked, found)
    value = _returned(asked, [found, *after], write)
    if value is not None:
        last: ast.stmt = found
        if not _ends([found]):
            last = next((each for each in after if _ends([each])), found)
        return Edit(Range(asked.range(found).start, asked.range(last).end), f"return {value}")
    assigned = _assigned(asked, found, write)
    return asked.replace(found, assigned) if assigned is not None else None


def _elif(asked: Asked, found: ast.If, write: _Where) -> Edit | None:
    """Return the edit of the `if` that an `elif` is part of."""
    parent = asked.parents.get(found)
    return _rewritten(asked, parent, write) if isinstance(parent, ast.If) else None


def _after(asked: Asked, node: ast.stmt) -> Sequence[ast.stmt]:
    parent = asked.parents.get(node)
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


def _returned(asked: Asked, block: Sequence[ast.stmt], write: _Where) -> str | None:
    """Return the value that a block returns, as one expression."""
    match block:
        case [ast.Return(value=ast.expr() as value), *_]:
            return asked.text(value)
        case [ast.If(test=test, body=body, orelse=orelse), *after]:
            yes = _returned(asked, [*body, *after], write)
            no = _returned(asked, [*orelse, *after], write)
            return write(_test(asked, test), yes, no) if yes and no else None
        case _:
            return None


def _assigned(asked: Asked, found: ast.If, write: _Where) -> str | None:
    """Return one assignment for `y = …` in each branch, or in one of them."""
    match found.body, found.orelse:
        case (
            [ast.Assign(targets=[ast.Name(id=name)], value=yes)],
            [ast.Assign(targets=[ast.Name(id=other)], value=no)],
        ) if name == other:
            no_text = asked.text(no)
        case ([ast.Assign(targets=[ast.Name(id=name)], value=yes)], []):
            no_text = name
        case _:
            return None
    return f"{name} = {write(_test(asked, found.test), asked.text(yes), no_text)}"


def _test(asked: Asked, test: ast.expr) -> str:
    """Return a condition without `and`, `or` and `not`."""
    match test:
        case ast.BoolOp(op=op, values=values):
            joint = " & " if isinstance(op, ast.And) else " | "
            return joint.join(f"({_test(asked, value)})" for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"{asked.jnp}.logical_not({_test(asked, operand)})"
        case _:
            return asked.text(test)


REMEDY = Remedy(
    "`jnp.where` or `jax.lax.cond` for an `if` that returns or assigns; `jnp` instead of `np`",
    candidates,
)
