"""JX420: a column of shape (n, 1) meets a vector of shape (n,), which gives all pairs (n, n).

NumPy's broadcasting aligns trailing axes: the vector becomes a row. Predictions of a layer with one
output and targets without that axis are the usual case; the loss is then a mean over n² pairs.
Whether a pair of shapes is a mistake is decided by where the column comes from, and what becomes
of the result.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx420_outer_broadcast.pairs import (
    ColumnOrigin,
    Join,
    arrays_behind,
    is_constant,
    join_of,
    origin_of,
    use_of,
)
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import parsed_call, parsed_statement
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted

# What the text of an expression says about its pairs.

_ADDS_AXIS = re.compile(r"\[[^\[\]]*\b(?:None|newaxis)\b[^\[\]]*\]|expand_dims\(|outer\(|grid\(")
"""What says anywhere in an expression that all pairs are meant."""
_SHAPES = frozenset({"reshape", "transpose", "atleast_2d", "swapaxes", "column_stack", "T", "mT"})
"""What says so of a column that it makes."""
_OF_PAIRS = re.compile(
    r"(?:^|_)(?:pair\w*|outer|kernel|gram|cross(?!_?entropy)|matrix|dists?|distances?|rbf|table|"
    r"grid|mesh|affinity|similarity|cdf|hist\w*)(?:_|$)"
)
"""What the name of a function says that computes all pairs."""
_LONGEST = 40
"""Characters of an expression that the help repeats."""


def is_explicit(text: str, join: Join) -> bool:
    """Whether the expression itself gives an operand the shape of a column."""
    column, node = written_column(text, join), parsed_call(text)
    shaped = [column] if column is not None else operands_of(node) if node is not None else []
    return _ADDS_AXIS.search(text) is not None or any(map(_is_shaped, shaped))


def _is_shaped(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _SHAPES
        case ast.UnaryOp(operand=operand):
            return _is_shaped(operand)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            keeps = any(keyword.arg == "keepdims" for keyword in keywords)
            return name in _SHAPES or (keeps and not name.startswith("arg"))
        case _:
            return False


def operands_of(node: ast.AST | None) -> Sequence[ast.expr]:
    """Return the operands of an operator, or the arguments of a call."""
    match node:
        case (
            ast.BinOp(left=left, right=right)
            | ast.Compare(left=left, comparators=[right])
            | ast.AugAssign(target=left, value=right)
        ):
            return left, right
        case ast.Call(args=given):
            return given
        case ast.Expr(value=value):
            return operands_of(value)
        case _:
            return ()


def written_column(text: str, join: Join) -> ast.expr | None:
    """Return the column as it is written; `None` where that is unclear."""
    node = parsed_statement(text)
    operands = operands_of(node) if not isinstance(node, ast.Call) else ()
    return operands[0 if join.column_first else 1] if operands else None


def without_axis(name: str) -> str:
    """Return the column without its trailing axis as code, for an expression that is short."""
    if not name or len(name) > _LONGEST:
        return ".squeeze(-1)"
    is_simple = isinstance(
        parsed_statement(name), ast.Name | ast.Attribute | ast.Call | ast.Subscript
    )
    return f"{name}.squeeze(-1)" if is_simple else f"({name}).squeeze(-1)"


def is_named(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression has a name of this kind, other than those of functions it calls."""
    node = parsed_statement(text)
    if node is None:
        return False
    called = {part.func for part in ast.walk(node) if isinstance(part, ast.Call)}
    names = [
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute) and part not in called
    ]
    names += [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return any(pattern.match(name) for name in names)


def computes_pairs(node: ast.AST) -> bool:
    """Whether a node is a function whose name says that all pairs are meant."""
    return isinstance(node, ast.FunctionDef) and _OF_PAIRS.search(node.name) is not None


RULE = Rule(
    "JX420",
    "outer-broadcast",
    "A column and a vector of the same length broadcast to a matrix.",
    severity="warning",
)
_LINEAR = frozenset(
    {"add", "sub", "mul", "div", "neg", "convert_element_type", "copy", "stop_gradient", "select_n"}
)
_OF_LOSSES = _LINEAR | {
    "abs", "square", "integer_pow", "max", "min", "sqrt", "sign", "lt", "le", "gt", "ge", "eq",
    "ne", "and", "or", "not", "is_finite", "clamp",
}  # fmt: skip
"""What losses do to errors. Functions of distances (`exp`, `cos`) are of kernels, which are meant
to be of all pairs.
"""
_DIFFERENCES = frozenset({"sub", "eq", "ne"})
_JOINS = frozenset({"add", "sub", "mul", "div", "eq", "ne", "max", "min", "select_n", "pow", "and"})
_PREDICTED = re.compile(
    r"^(\w+_)?(pred\w*|y_?hat|y_?pred\w*|outputs?|logits?|probs?|estimates?|recon\w*|fitted|"
    r"forecasts?|scores?|margins?|values?)(_\w+)?$"
)
_WANTED = re.compile(
    r"^(\w+_)?(targets?|labels?|truth|y_?true|gt|expected|returns?|rewards?|adv\w*|dones?)(_\w+)?$"
)
_Y = re.compile(r"^ys?(_\w+)?$")
_X = re.compile(r"^[xt]s?(_\w+)?$")
_WEIGHTS = re.compile(
    r"^(\w+_)?(loss\w*|err\w*|mask\w*|weights?|importance|ratio|log_?probs?|nll|valid)(_\w+)?$"
)
_TRIED = 4
"""Equations of one expression that are looked at: an unrolled loop has many."""


@dataclass(frozen=True, slots=True)
class OuterBroadcast:
    """A column that meets a vector."""

    column: tuple[int, ...]
    """The shape of the operand whose last axis has size 1."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's expressions whose operands broadcast to all pairs by accident."""
    flow = view.flow
    tried: Counter[object] = Counter()
    for step in flow.steps.values():
        if step.primitive not in _JOINS or step.backward or tried[step.span] >= _TRIED:
            continue
        shape = flow.value(step.results[0]).shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            continue
        join = join_of(flow, step, shape)
        if join is None:
            continue
        tried[step.span] += 1
        text = view.quote(step.path)
        if not text or is_explicit(text, join) or not _is_accident(flow, join, text):
            continue
        if any(map(computes_pairs, view.around(step.path))):
            continue
        tried[step.span] = _TRIED
        column, vector = flow.value(join.column), flow.value(join.vector)
        first, second = column.shape, vector.shape
        if not join.column_first:
            first, second = second, first
        written = written_column(text, join)
        name = column.said
        if written is not None:
            name = ast.get_source_segment(text, written) or ""
        count = vector.shape[-1]
        yield Violation(
            f"shapes {first} and {second} broadcast to {shape}",
            step.path,
            help=f"drop the axis of size 1 first: `{without_axis(name)}`",
            notes=(
                f"each of {count} elements is combined with all {count}, not with its own",
                f"only {quoted(name, 'one operand', most=30)} has a trailing axis of size 1",
            ),
            data=OuterBroadcast(column.shape),
        )


def _is_accident(flow: Flow, join: Join, text: str) -> bool:
    """Whether the pairs can hardly be meant."""
    if is_constant(flow, join.vector) or is_constant(flow, join.column):
        return False
    count = flow.value(join.vector).shape[-1]
    if arrays_behind(flow, join.column, count) & arrays_behind(flow, join.vector, count):
        return False  # all pairs of one array
    origin = origin_of(flow, join.column)
    predicted, wanted = is_named(_PREDICTED, text), is_named(_WANTED, text)
    use = use_of(flow, join.step)
    difference = join.step.primitive in _DIFFERENCES
    if use.matrix:
        return False
    if origin is ColumnOrigin.ADDED:
        return use.reduced and predicted and difference
    targets = wanted or (is_named(_Y, text) and not is_named(_X, text))
    if origin is ColumnOrigin.LAYER or predicted or wanted:
        if use.reduced:
            return difference or not use.other
        if use.in_part and (origin is ColumnOrigin.LAYER or use.primitives <= _OF_LOSSES):
            return not use.other
        return difference and not use.other and (origin is ColumnOrigin.LAYER or targets)
    if not use.reduced:
        return False
    if difference:
        return use.primitives <= _OF_LOSSES
    if join.step.primitive in ("mul", "div") and targets:
        return not use.other
    return is_named(_WEIGHTS, text) and use.primitives <= _LINEAR


# The fix: drop the axis of size 1 of the column.


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with `.squeeze(-1)` on each operand that has the column's shape.

    The values change on purpose.
    """
    shapes = context.finding.data
    node = next(iter(context.nodes), None)
    if not isinstance(shapes, OuterBroadcast) or node is None:
        return
    columns = [
        operand
        for operand in operands_of(node)
        if (aval := context.aval_of(operand)) is not None and aval.shape == shapes.column
    ]
    names = " and ".join(quoted(context.text(column), most=30) for column in columns)
    edits = [
        context.replace(column, f"{context.operand(column)}.squeeze(-1)") for column in columns
    ]
    if edits:
        yield Candidate(f"Drop the last axis of {names}", tuple(edits), same=False)


# Numbers that are right; what is computed is less.
REMEDY = Remedy(
    "the column without its axis of size 1 (unsafe)",
    candidates,
    trades=figures.ALL,
)
