"""Write the item assignments of a function as updates by `.at[…]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.rules.fixing.constants import jnp_for_numpy
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.text.expressions import FunctionNode
from jaxsight.rules.text.item_updates import is_mask, item_target, masked, target_of, updated
from jaxsight.rules.text.statements import own_statements
from jaxsight.rules.wording import cut
from jaxsight.source.text import Edit

_TITLE = 40
"""Characters of a statement in a title: longer ones do not fit into an editor's menu."""
_PYTHON = (
    ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.Constant, ast.JoinedStr,
)  # fmt: skip
_PYTHON_CALLS = frozenset({"list", "dict", "set", "defaultdict", "OrderedDict", "deque"})


def in_place(context: FixContext) -> Iterator[Candidate]:
    """Yield updates by `.at[…]` in place of the item assignments around a finding.

    All those of the function, and `jnp` instead of `np` where the arrays come from it; then those
    of the arrays that are not NumPy's; then `jnp` everywhere.
    """
    function = context.function(context.node)
    if function is None:
        return
    statements = list(own_statements(function.body))
    candidates: list[Candidate] = []
    for merged in (True, False):
        writes = [
            (statement, text, ast.unparse(place.array))  # `self.x` for `self.x[0]`
            for statement in statements
            if (text := _written(context, statement, merged)) is not None
            and (place := item_target(target_of(statement), merged=merged)) is not None
        ]
        arrays = [write for write in writes if _kind(context, function, write[2]) != "python"]
        of_jax = [array for array in arrays if _kind(context, function, array[2]) != "numpy"]
        for chosen, numpy in (
            (arrays, _with_jnp(context, function, {name for _, _, name in arrays})),
            (of_jax, ()),
            (arrays, _with_jnp(context, function, None)),
        ):
            edits = [context.replace(statement, text) for statement, text, _ in chosen]
            if chosen and not _overlap(numpy, edits):
                candidates.append(Candidate(_title(chosen), (*numpy, *edits)))
    if any(_accumulates(context, statement) for statement in statements):
        # NumPy adds once where an index comes twice, `.at[…].add` as often as it comes.
        candidates = [replace(candidate, safe=False, same=False) for candidate in candidates]
    yield from candidates


def _accumulates(context: FixContext, statement: ast.stmt) -> bool:
    """Whether a statement is `x[indices] += y` for several indices."""
    match statement:
        case ast.AugAssign(target=ast.Subscript(slice=index), op=ast.Add() | ast.Sub()):
            aval = context.aval_of(index)
            return aval is not None and bool(aval.shape) and aval.dtype != "bool"
        case _:
            return False


def _written(context: FixContext, statement: ast.stmt, merged: bool) -> str | None:
    """Return a statement without its change in place; `None` where it has none."""
    target = item_target(target_of(statement), merged=False)
    if target is not None and context.jnp:
        index = target.indices[0]
        if (aval := context.aval_of(index)) is not None:
            is_boolean = aval.dtype == "bool" and bool(aval.shape)
        else:
            is_boolean = any(map(is_mask, _values(context, index)))
        if is_boolean:
            return masked(statement, context.text, context.jnp)
    return updated(statement, context.text, merged=merged)


def _values(context: FixContext, index: ast.expr) -> Iterator[ast.expr]:
    """Yield an index, and what is assigned to it where it is a name."""
    yield index
    function = context.function(index)
    if isinstance(index, ast.Name) and function is not None:
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=index.id)], value=value):
                    yield value


def _title(chosen: Sequence[tuple[ast.stmt, str, str]]) -> str:
    if len(chosen) == 1:
        return f"Assign the updated copy: `{shortened(chosen[0][1])}`"
    names = [f"`{name}`" for name in dict.fromkeys(name for _, _, name in chosen)]
    listed = ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
    return f"Update {listed} with `.at[…]`"


def _kind(context: FixContext, function: FunctionNode, name: str) -> str:
    """Return `python` or `numpy` for a name that is bound to a container or array of these."""
    kinds = {_kind_of(context, value) for value in _assigned(function, {name})}
    return kinds.pop() if len(kinds) == 1 else ""


def _assigned(function: FunctionNode, names: set[str]) -> Iterator[ast.expr]:
    """Yield what a function assigns to names or attributes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and not names.isdisjoint(map(ast.unparse, node.targets)):
            yield node.value


def _kind_of(context: FixContext, value: ast.expr) -> str:
    called = context.called(value.func) if isinstance(value, ast.Call) else ""
    if called.startswith("numpy."):
        return "numpy"
    start = value.left if isinstance(value, ast.BinOp) else None
    is_python = isinstance(value, _PYTHON) or isinstance(start, ast.List)
    return "python" if is_python or called.rpartition(".")[2] in _PYTHON_CALLS else ""


def _with_jnp(
    context: FixContext, function: FunctionNode, names: set[str] | None
) -> tuple[Edit, ...]:
    """Return what makes the arrays that NumPy creates in a function JAX's.

    Args:
        context: the finding.
        function: the function.
        names: the arrays, by the names that they are assigned to; all calls when it is `None`.
    """
    if not context.jnp:
        return ()
    if names is None:
        return jnp_for_numpy(context, [function])
    values = _assigned(function, names)
    return jnp_for_numpy(context, [each for each in values if _kind_of(context, each) == "numpy"])


def _overlap(first: Sequence[Edit], second: Sequence[Edit]) -> bool:
    """Whether an edit is inside of another one."""
    return any(
        outer.range.start <= edit.range.start and edit.range.end <= outer.range.end
        for edit in first
        for outer in second
    )


def shortened(text: str) -> str:
    """Return a statement as a title has it."""
    return cut(" ".join(text.split()), _TITLE)
