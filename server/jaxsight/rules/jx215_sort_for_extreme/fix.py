"""Fix JX215: take the extremes without sorting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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
        form = _form(context, read, node)
        if form is not None:
            title, text, imports = form
            expression = _whole(context, node)
            outer = context.parents.get(expression)
            match outer:
                case ast.UnaryOp(op=ast.USub()) if text.startswith("-"):
                    expression, text = outer, text[1:]
            # Indices of equal values, and NaN in a minimum, are not the same.
            safe = not read.indices and not title.endswith("min`")
            data = context.finding.data
            if isinstance(data, Extreme) and data.is_slower_on_gpus:
                safe = False
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


def _subscripts(context: FixContext, node: ast.expr) -> list[ast.Subscript]:
    """Return the subscripts of an expression, the innermost first."""
    subscripts: list[ast.Subscript] = []
    while isinstance(parent := context.parents.get(node), ast.Subscript) and parent.value is node:
        subscripts.append(parent)
        node = parent
    return subscripts


def _whole(context: FixContext, node: ast.expr) -> ast.expr:
    """Return an expression with the subscripts that say what is read of it."""
    subscripts = _subscripts(context, node)
    outermost: ast.expr = node
    for subscript in subscripts[:2]:
        outermost = subscript
        if _index(subscript) is not None and not _is_reversal(_index(subscript)):
            break
    return outermost


def _index(node: ast.Subscript) -> ast.expr | None:
    """Return the index of the last axis; nothing where others are indexed too."""
    if not isinstance(node.slice, ast.Tuple):
        return node.slice
    *leading, last = node.slice.elts
    for element in leading:
        is_full = (
            isinstance(element, ast.Slice)
            and element.lower is element.upper is element.step is None
        )
        if not is_full and not (isinstance(element, ast.Constant) and element.value is ...):
            return None
    return last


def _is_reversal(index: ast.expr | None) -> bool:
    return (
        isinstance(index, ast.Slice)
        and index.lower is index.upper is None
        and integer(index.step) == -1
    )


def _form(
    context: FixContext, read: _Sorted, node: ast.expr
) -> tuple[str, str, tuple[Edit, ...]] | None:
    """Return a title, what to write for a sorted array and its subscripts, and imports for it."""
    subscripts = _subscripts(context, node)
    if not subscripts:
        return None
    if read.rank > 1 and not isinstance(subscripts[0].slice, ast.Tuple):
        return None
    index, descending = _index(subscripts[0]), read.descending
    if _is_reversal(index) and len(subscripts) > 1:
        index, descending = _index(subscripts[1]), not descending
    text, signed = context.text(read.values), context.operand(read.values)
    if not isinstance(index, ast.Slice):
        position = integer(index)
        if position not in (0, -1) or (read.negated and not read.indices):
            return None
        largest = (position == -1) ^ descending ^ read.negated
        name = f"{'arg' if read.indices else ''}{'max' if largest else 'min'}"
        along = ", axis=-1" if read.rank > 1 else ""
        return f"Use `jnp.{name}`", f"{context.jnp}.{name}({text}{along})", ()
    count = _count(context, index)
    if count is None:
        return None
    size, at_end = count
    largest = at_end ^ descending ^ read.negated
    kind = context.aval_of(read.values)
    if not largest and (kind is None or not kind.dtype.startswith(("f", "bf", "i"))):
        return None
    # `top_k` gives the largest first; what is sorted in the other order is reversed.
    top = f"{context.lax}.top_k({'' if largest else '-'}{text if largest else signed}, {size})"
    top += "[1]" if read.indices else "[0]"
    if at_end:
        top += "[..., ::-1]" if read.rank > 1 else "[::-1]"
    if not read.indices and largest == read.negated:
        top = f"-{top}"
    return f"Use `{context.lax}.top_k`", top, context.jax_import()


def _count(context: FixContext, index: ast.Slice) -> tuple[str, bool] | None:
    """Return how many values a slice reads, and whether they are the last ones."""
    if index.step is not None:
        return None
    match index.lower, index.upper:
        case (None | ast.Constant(value=0), ast.expr() as upper) if not isinstance(
            upper, ast.UnaryOp
        ):
            return context.text(upper), False
        case ast.UnaryOp(op=ast.USub(), operand=size), None:
            return context.text(size), True
    return None


REMEDY = Remedy("`jnp.max`, `jnp.argmax` or `jax.lax.top_k` instead of a sort", candidates)
