"""Fix JX201: write a reduction out over its tiny axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Proof, Remedy
from jaxsight.rules.fixing.syntax import integer
from jaxsight.rules.jx201_tiny_reduction.rule import TINY
from jaxsight.rules.text.expressions import keyword

_JOINED = {"sum": " + ", "prod": " * ", "any": " | ", "all": " & "}
_PAIRED = {"max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum"}


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the reduction as operators between the slices of its operand.

    An operand that is an expression is assigned to a name first.
    """
    for call in context.find(ast.Call):
        read = _read(context, call)
        if read is None:
            continue
        name, operand, axis, keep = read
        aval = context.aval_of(operand)
        if aval is None or not -len(aval.shape) <= axis < len(aval.shape):
            continue
        length = aval.shape[axis]
        if not 1 < length <= TINY:
            continue
        parts = [_index(axis, keep, index) for index in range(length)]
        title = f"Write out `{name}` over the axis of size {length}"
        statement = context.statement(call)
        if isinstance(operand, ast.Name | ast.Attribute) or statement is None:
            text = _joined(context, name, context.operand(operand), parts)
            yield Candidate(title, (context.replace(call, context.bracketed(call, text)),))
            return
        terms = context.fresh("terms")
        text = _joined(context, name, terms, parts)
        yield Candidate(
            title,
            (
                context.before(statement, f"{terms} = {context.on_its_own(operand)}"),
                context.replace(call, context.bracketed(call, text)),
            ),
        )
        return


def _read(context: FixContext, call: ast.Call) -> tuple[str, ast.expr, int, bool] | None:
    """Return the function's name, operand, axis, and whether dimensions are kept.

    Return `None` if the call has other arguments.
    """
    read = context.array_call(call)
    if read is None:
        return None
    name, operand, arguments = read
    if (name not in _JOINED and name not in _PAIRED) or len(arguments) > 1:
        return None
    if any(keyword.arg not in ("axis", "keepdims") for keyword in call.keywords):
        return None
    along = arguments[0] if arguments else keyword(call, "axis")
    axis = integer(along)
    keep = keyword(call, "keepdims")
    keeps = isinstance(keep, ast.Constant) and bool(keep.value)
    if along is None and (aval := context.aval_of(operand)) is not None and len(aval.shape) == 1:
        axis = 0
    return (name, operand, axis, keeps) if axis is not None else None


def _index(axis: int, keep: bool, index: int) -> str:
    index_text = f"{index}:{index + 1}" if keep else str(index)
    if axis >= 0:
        return ", ".join((*(":" for _ in range(axis)), index_text))
    return ", ".join(("...", index_text, *(":" for _ in range(-axis - 1))))


def _joined(context: FixContext, name: str, operand: str, parts: list[str]) -> str:
    terms = [f"{operand}[{part}]" for part in parts]
    if name in _JOINED:
        return _JOINED[name].join(terms)
    text = terms[0]
    for term in terms[1:]:
        text = f"{context.jnp}.{_PAIRED[name]}({text}, {term})"
    return text


REMEDY = Remedy(
    "the reduction written out over the axis",
    candidates,
    proof=Proof.FEWER,
)
