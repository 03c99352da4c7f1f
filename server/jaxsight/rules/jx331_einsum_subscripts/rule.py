"""JX331: the subscripts of `einsum` do not fit its operands.

JAX parses subscripts with opt_einsum, which numbers operands in the order of its own path: names
and types of operands are read from the call where they can be.
"""

from __future__ import annotations

import ast

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Subscripts of `einsum` do not fit its operands.")

ERRORS = ErrorTable(RULE, "ValueError")


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize calls whose operands are not where `einsum` looks for them, then JAX's errors."""
    return _of_operands(error) or ERRORS.explain(error)


def _of_operands(error: RaisedError) -> Violation | None:
    """Return what is said of operands in a list, or before the subscripts.

    JAX then takes them for NumPy arrays, or for the subscripts.
    """
    call = error.call
    if call is None or error.name != "einsum":
        return None
    if not error.is_a("TypeError", "TracerArrayConversionError"):
        return None
    match call.args:
        case [ast.Constant(value=str(text)), ast.List(elts=items) | ast.Tuple(elts=items)]:
            message = "operands of `einsum` are in a list"
        case [first, ast.Constant(value=str(text)), *others]:
            message, items = "operands of `einsum` precede its subscripts", [first, *others]
        case _:
            return None
    written = f"{ast.unparse(call.func)}({text!r}, {', '.join(map(ast.unparse, items))})"
    return Violation(message, help=f"write `{short(written)}`")


def _terms(error: Matched) -> list[tuple[str, ast.expr]]:
    """Return the labels of each operand with the operand, if the call has them as text."""
    match error.arguments:
        case [ast.Constant(value=str(subscripts)), *operands]:
            terms = subscripts.replace(" ", "").partition("->")[0].split(",")
            return [*zip(terms, operands, strict=True)] if len(terms) == len(operands) else []
        case _:
            return []


@ERRORS.explains(
    r"Size of label '(?P<label>\w)' for operand \d+ \((?P<one>\d+)\) does not match previous "
    r"terms \((?P<other>\d+)\)"
)
def of_size(error: Matched) -> Violation:
    label = error["label"]
    places, notes = [], []
    for term, source in _terms(error):
        type, text = error.operand(source), ast.unparse(source)
        if type is not None and label in term and "." not in term and len(term) == len(type.shape):
            axis = term.index(label)
            places.append(f"{type.shape[axis]} in {quoted(text, most=16)} (axis {axis})")
            notes.append(f"{quoted(text)} is `{type.dtype}[{','.join(map(str, type.shape))}]`")
    if len(places) != 2:
        places = [error["one"], error["other"]]
    return Violation(
        f"label `{label}` of `einsum` has two sizes: {' and '.join(places)}",
        help=f"give axes of different sizes different labels, or make them equal; `{label}` is one "
        "axis in all operands",
        notes=tuple(notes),
    )


@ERRORS.explains(
    r"Einstein sum subscript '?(?P<term>[^'\s]*)'? does not contain the correct number of "
    r"indices for operand (?P<operand>\d+)"
)
def of_rank(error: Matched) -> Violation:
    term, number, terms = error["term"], int(error["operand"]), _terms(error)
    # Ranks are checked before operands are reordered: the number is that of the call.
    source = terms[number][1] if number < len(terms) and terms[number][0] == term else None
    type = error.operand(source)
    name = quoted(ast.unparse(source) if source is not None else "", f"operand {number}", most=20)
    count = len(term.replace("...", ""))
    axes = f", but {name} has {len(type.shape)} axes" if type is not None else f" do not fit {name}"
    return Violation(
        f"{count} label{'s' * (count != 1)} {quoted(term, most=20)} of `einsum`{axes}",
        help="write one label for each axis; `...` stands for any number of leading axes",
    )


ERRORS.table(r"""
Output character '?(?P<label>\w)'? did not appear in the input
    label `{label}` of the result is in no operand of {expression:q}
    help: use labels of the operands after `->`, or remove `{label}`
Output character '?(?P<label>\w)'? appeared more than once in the output
    label `{label}` is twice in the result of {expression:q}
    help: take a diagonal with a repeated label in an operand, not in the result
Number of einsum subscripts, (?P<terms>\d+), must be equal to the number of operands,
        (?P<operands>\d+)
    {expression:q} has subscripts for another number of operands ({terms}, not {operands})
    help: write one group of labels for each operand, with commas between them
Character '?(?P<label>.)'? is not a valid symbol
    {label:q} in the subscripts of {expression:q} is not a label
    help: use letters, commas, `->` and `...`
(?:Subscripts can only contain one '->'|Invalid Ellipses)
    subscripts of {expression:q} are not valid
    help: write labels of one letter, `...` for leading axes, and one `->` before the result
""")
