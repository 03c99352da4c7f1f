"""Fix JX215: take the extremes without sorting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.fixing.syntax import integer
from jaxsight.rules.jx215_sort_for_extreme.rule import Extreme
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A call that sorts along the last axis."""

    values: ast.expr
    """What is sorted, without its sign."""
    negated: bool
    descending: bool
    indices: bool
    rank: int


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `jnp.max`, `jnp.argmax` or `lax.top_k` for what is read of a sorted array."""
    for call in context.find(ast.Call):
        read = _sorted(context, call)
        if read is None:
            continue
        node: ast.expr = call
        edits: tuple[Edit, ...] = ()
        assigned = context.parents.get(call)
        if isinstance(assigned, ast.Assign) and (use := context.only_use(assigned)) is not None:
            node, edits = use, (Edit(context.lines(assigned), ""),)
        expression, index, read = _part(context, node, read)
        form = _form(context, index, read) if index is not None else None
        if form is not None:
            title, text = form
            match context.parents.get(expression):
                case ast.UnaryOp(op=ast.USub()) as outer if text.startswith("-"):
                    expression, text = outer, text[1:]
            # Indices of equal values, and NaN in a minimum, are not the same.
            data = context.finding.data
            is_slower = isinstance(data, Extreme) and data.is_slower_on_gpus
            safe = not (read.indices or title.endswith("min`") or is_slower)
            imports = context.jax_import() if title.endswith("top_k`") else ()
            yield Candidate(title, (*imports, context.replace(expression, text), *edits), safe=safe)
        return


def _sorted(context: FixContext, call: ast.Call) -> _Sorted | None:
    """Read a call of a function that sorts."""
    sort = context.array_call(call)
    if sort is None or sort[0] not in ("sort", "argsort"):
        return None
    name, values, arguments = sort
    if any(keyword.arg not in ("axis", "dimension", "descending") for keyword in call.keywords):
        return None
    aval = context.aval_of(values)
    along = arguments[0] if arguments else keyword(call, "axis", "dimension")
    if along is not None:
        axis = integer(along)
        if axis is None or aval is None or axis not in (-1, len(aval.shape) - 1):
            return None
    if aval is None or not context.jnp:
        return None
    down = keyword(call, "descending")
    descending = isinstance(down, ast.Constant) and down.value is True
    negated = isinstance(values, ast.UnaryOp) and isinstance(values.op, ast.USub)
    if isinstance(values, ast.UnaryOp) and negated:
        values = values.operand
    return _Sorted(values, negated, descending, name == "argsort", len(aval.shape))


def _part(
    context: FixContext, node: ast.expr, read: _Sorted
) -> tuple[ast.expr, ast.expr | None, _Sorted]:
    """Return the expression that reads a part of a sorted array, its index, and the sort.

    The index is that of the last axis; there is none where others are indexed too. `[::-1]` before
    it turns the order of the sort.
    """
    subscript = context.parents.get(node)
    if not isinstance(subscript, ast.Subscript) or subscript.value is not node:
        return node, None, read
    index = subscript.slice
    if isinstance(index, ast.Tuple):
        *others, index = index.elts
        if any(ast.unparse(other) not in (":", "...") for other in others):
            return node, None, read
    elif read.rank > 1:
        return node, None, read
    if ast.unparse(index) == "::-1":
        return _part(context, subscript, replace(read, descending=not read.descending))
    return subscript, index, read


def _form(context: FixContext, index: ast.expr, read: _Sorted) -> tuple[str, str] | None:
    """Return a title, and what to write for a part of a sorted array."""
    text = context.text(read.values)
    if (position := integer(index)) in (0, -1) and (read.indices or not read.negated):
        largest = (position == -1) ^ read.descending ^ read.negated
        name = f"{'arg' if read.indices else ''}{'max' if largest else 'min'}"
        along = ", axis=-1" if read.rank > 1 else ""
        return f"Use `jnp.{name}`", f"{context.jnp}.{name}({text}{along})"
    match index:
        case ast.Slice(lower=None | ast.Constant(value=0), upper=ast.expr() as size, step=None) if (
            not isinstance(size, ast.UnaryOp)
        ):
            at_end = False
        case ast.Slice(lower=ast.UnaryOp(op=ast.USub(), operand=size), upper=None, step=None):
            at_end = True
        case _:
            return None
    largest = at_end ^ read.descending ^ read.negated
    kind = context.aval_of(read.values)
    if not largest and (kind is None or not kind.dtype.startswith(("f", "bf", "i"))):
        return None
    # `top_k` gives the largest first; what is sorted in the other order is reversed.
    values = text if largest else f"-{context.operand(read.values)}"
    top = f"{context.lax}.top_k({values}, {context.text(size)})[{int(read.indices)}]"
    if at_end:
        top += "[..., ::-1]" if read.rank > 1 else "[::-1]"
    if not read.indices and largest == read.negated:
        top = f"-{top}"
    return f"Use `{context.lax}.top_k`", top


REMEDY = Remedy("`jnp.max`, `jnp.argmax` or `jax.lax.top_k` instead of a sort", candidates)
