"""JX215: an array is sorted, and only its largest or smallest values are read."""

# Longer than most rules: what is read of a sort decides between six functions, in the program and
# in the text.

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.matrices import calls
from jaxsight.rules.program.slices import Read, reads
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import integer, keyword, name_of
from jaxsight.source.text import Edit
from jaxsight.wire.program import Step

RULE = Rule(
    __name__, "Array sorted to read only its largest or smallest values.", severity="warning"
)

LEAST = 8
"""Values along the sorted axis."""
SHARE = 4
"""Only one of so many values, at most, may be read."""

_SELECTED = 16
"""Values that XLA's TopKSpecializer selects on GPUs without sorting, from `_LONG` or more: for
others it sorts there too (xla/service/gpu/transforms/topk_specializer.cc).
"""
_LONG = 1024
_ALONE = 22_000
"""Above so many values, XLA sorts a single row of 32-bit numbers with CUB on H100s
(`IsCubSortFasterOnH100` in xla/service/gpu/transforms/sort_rewriter.cc); one block of threads
selects from a row. On an H100 with JAX 0.11.2, 2^20 values were sorted in 85 µs, and 10 of them
selected in 1559 µs; 8 values of each of 4096 rows of 1024 in 135 µs, which are sorted in 195 µs.
Several values of such a row are best sorted, and nothing is said of it.
"""

_SORTS = frozenset({"sort", "argsort", "sort_key_val"})
_COUNTED = re.compile(r"\[(?:[^\[\]]*,)? *(?:-\w+|\d+) *\]$")
"""A subscript that ends in a number, or in a sign and a name."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield sorts of which a few values at the ends are read."""
    flow = view.flow
    for step in flow.forward_steps("sort"):
        name, axis = view.called(step), step.number("dimension", -1)
        if name not in _SORTS or step.numbers("num_keys") not in ((), (1,)):
            continue
        size = flow.value(step.results[0]).shape[axis]
        parts = _parts(view, step, axis) if size >= LEAST else None
        ends = [end for _, part in parts or () if (end := _end(view, part, size)) is not None]
        read = sum(dict(sorted(ends)).values())
        shape, most = flow.value(step.operands[0]).shape, max((n for _, n in ends), default=0)
        is_faster = math.prod(shape) == size > _ALONE and 1 < most <= _SELECTED
        if parts and len(ends) == len(parts) and read * SHARE <= size and not is_faster:
            indices = name == "argsort" or all(index > 0 for index, _ in parts)
            yield _violation(view, step, ends, indices, size)


def _parts(view: ProgramView, step: Step, axis: int) -> list[tuple[int, Read]] | None:
    """Return what is read of each result; `None` where all of one may be.

    What the derivative of a sort reads of its order is written where the sort is.
    """
    flow = view.flow
    parts: list[tuple[int, Read]] = []
    for index, number in enumerate(step.results):
        of_result = reads(flow, number, axis)
        own = all(user.span == step.span for user in flow.used_by(number))
        if of_result is not None:
            parts += [(index, read) for read in of_result]
        elif index == 0 or not own or view.called(step) != "sort":
            return None
    return parts


def _end(view: ProgramView, part: Read, size: int) -> tuple[bool, int] | None:
    """Return whether a part is of the last values, and how many an extreme of it needs.

    One value from between is an order statistic; that of `x[-k]` is meant to be the k-th largest,
    that of `x[int(0.95 * n)]` a quantile.
    """
    from_start, from_end = part.last + 1, size - part.first
    count = min(from_start, from_end)
    is_counted = count == 1 or _COUNTED.search(view.quote(part.step.path))
    if part.first < 0 or part.last >= size or (part.dropped and not is_counted):
        return None
    return from_end < from_start, count


def _violation(
    view: ProgramView, step: Step, ends: list[tuple[bool, int]], indices: bool, size: int
) -> Violation:
    values, along = _operand(view, step)
    shape, maker = view.flow.value(step.operands[0]).shape, view.flow.producer(step.operands[0])
    # Where the keys are negated, what is last is smallest.
    turned = maker is not None and maker.primitive == "neg"
    sides = {is_last != turned for is_last, _ in ends}
    count, both = max(count for _, count in ends), len(sides) == 2
    which, kind, negated = ("largest", "max", "") if True in sides else ("smallest", "min", "-")
    arg, where = "arg" * indices, f", axis={along}" if along else ""
    if both and count == 1:
        form = f"`jnp.{arg}max({values}{where})` and `jnp.{arg}min({values}{where})`"
    elif both:
        form = f"`jax.lax.top_k` of `{values}` and of `-{values}`"
    elif count == 1:
        form = f"`jnp.{arg}{kind}({values}{where})`"
    else:
        if along not in ("", "-1", str(len(shape) - 1)):  # `top_k` selects along the last axis
            values = f"jnp.moveaxis({values}, {along}, -1)"
        signed = f"({values})" if negated and " " in values and "," not in values else values
        top = f"jax.lax.top_k({negated}{signed}, {count})[{int(indices)}]"
        sign = "" if indices else negated
        form = f"`{sign}{top}`, {which} first"
    notes = []
    wanted = "extremes" if both else which if count == 1 else f"{which} {count:,}"
    if indices and any(is_last for is_last, _ in ends):
        notes.append("among equal values, another index may be the result")
    elif not indices and count == 1 and False in sides:
        notes.append("`jnp.min` is NaN where any value is; a sort puts NaN last")
    if count > 1 and (count > _SELECTED or size < _LONG):
        notes.append(
            f"on GPUs XLA sorts for `top_k` too, unless it is of up to {_SELECTED} from {_LONG:,} "
            "or more"
        )
    return Violation(
        f"{size:,} values are sorted to read only the {wanted}",
        step.path,
        help=f"use {form}",
        notes=tuple(notes),
        severity="information" if count > _SELECTED else "",
    )


def _operand(view: ProgramView, step: Step) -> tuple[str, str]:
    """Return the sorted expression without a sign, and its axis, empty for arrays of one axis."""
    rank = len(view.flow.value(step.operands[0]).shape)
    axis = "-1" if rank > 1 else ""
    for call in calls(view.quote(step.path)):
        given = list(call.args)
        # Methods take no array: `x.argsort(0)` has the axis in its first place.
        is_method = not given or isinstance(given[0], ast.Constant)
        if is_method and isinstance(call.func, ast.Attribute):
            given.insert(0, call.func.value)
        if len(given) == 2 and name_of(call) in ("sort", "argsort"):
            axis = ast.unparse(given[1])
        if (along := keyword(call, "axis", "dimension")) is not None:
            axis = ast.unparse(along)
        match given:
            case [ast.List() | ast.Tuple(), *_] | []:
                break
            case [ast.UnaryOp(op=ast.USub(), operand=node) | node, *_]:
                text = ast.unparse(node)
                return (text if len(text) <= 24 else "x"), axis
    return "x", axis


# The fix: take the extremes without sorting.


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A call that sorts along the last axis."""

    values: ast.expr
    """What is sorted, without its sign."""
    negated: bool
    descending: bool
    indices: bool
    rank: int


@RULE.fixes("`jnp.max`, `jnp.argmax` or `jax.lax.top_k` instead of a sort")
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
            node, edits = use, (context.without(assigned),)
        expression, index, read = _part(context, node, read)
        form = _form(context, index, read) if index is not None else None
        if form is not None:
            title, text = form
            match context.parents.get(expression):
                case ast.UnaryOp(op=ast.USub()) as outer if text.startswith("-"):
                    expression, text = outer, text[1:]
            # Indices of equal values, and NaN in a minimum, are not the same.
            safe = not (read.indices or title.endswith("min`"))
            imports = context.jax_import() if title.endswith("top_k`") else ()
            yield Candidate(title, (*imports, context.replace(expression, text), *edits), safe=safe)
        return


def _sorted(context: FixContext, call: ast.Call) -> _Sorted | None:
    """Read a call of a function that sorts."""
    sort = context.array_call(call)
    if sort is None or sort[0] not in ("sort", "argsort") or not context.jnp:
        return None
    name, values, arguments = sort
    if any(key.arg not in ("axis", "dimension", "descending") for key in call.keywords):
        return None
    aval = context.aval_of(values)
    along = arguments[0] if arguments else keyword(call, "axis", "dimension")
    if aval is None or (along and integer(along) not in (-1, len(aval.shape) - 1)):
        return None
    down, negated = keyword(call, "descending"), False
    descending = isinstance(down, ast.Constant) and down.value is True
    match values:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            values, negated = operand, True
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
