"""JX420: a column of shape (n, 1) meets a vector of shape (n,), which gives all pairs (n, n).

NumPy's broadcasting aligns trailing axes: the vector becomes a row. Predictions of a layer with one
output and targets without that axis are the usual case; the loss is then a mean over n² pairs.
Whether a pair of shapes is a mistake is decided by where the column comes from, and what becomes
of the result.
"""

# Longer than most rules: which pairs are meant is decided by where a column comes from and what
# becomes of the result.

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import ALL, Rule, Violation
from jaxsight.rules.text.expressions import operands_of, parsed_call, parsed_statement
from jaxsight.rules.wording import quoted
from jaxsight.wire.primitives import ELEMENTWISE, PICKS, REDUCTIONS, SHAPED
from jaxsight.wire.program import LITERAL, Step

# Columns that meet vectors: where a column comes from, and what becomes of all pairs.

_REDUCTIONS = REDUCTIONS - {"argmax", "argmin"}
_ADDS = frozenset({"broadcast_in_dim", "reshape", "expand_dims"})
_KEEPS_AXIS = frozenset({"squeeze", "transpose", "rev", "concatenate", "slice"})
_MOST = 200
"""Values that a column's origin is looked for in."""


class ColumnOrigin(Enum):
    """Where the trailing axis of size 1 comes from; the first one of several counts."""

    LAYER = "a product or a convolution with one output"
    ADDED = "an axis that was added to a vector"
    GIVEN = "an argument, a constant, a slice, a loop"


@dataclass(frozen=True, slots=True)
class Join:
    """An equation whose operands are a column and a row that was a vector."""

    step: Step
    column: int
    vector: int
    column_first: bool


@dataclass(slots=True)
class Use:
    """What becomes of a matrix of pairs."""

    reduced: bool = False
    """All its elements are reduced to one, or to one for each batch."""
    primitives: set[str] = field(default_factory=set)
    """The elementwise primitives before that."""
    in_part: bool = False
    """It is summed along one axis after the other, or multiplied as a matrix."""
    other: bool = False
    """Something uses it that needs a matrix: a sort, a maximum along an axis."""
    matrix: bool = False
    """It is combined with another matrix of that shape, so all pairs are meant."""


def join_of(flow: Flow, step: Step, shape: tuple[int, ...]) -> Join | None:
    """Return the column and the vector that an equation makes a matrix of.

    The vector becomes a row by broadcasting in the same expression: nobody wrote it.
    """

    def broadcasts(maker: Step) -> bool:
        is_shaped = maker.primitive in _ADDS
        return is_shaped and maker.span == step.span

    columns, rows = list[tuple[int, int]](), list[tuple[int, int]]()
    for index, operand in enumerate(step.operands):
        number = flow.before(operand, broadcasts)
        before = flow.value(number).shape
        if before[-2:] == (shape[-1], 1):
            columns.append((index, number))
        is_vector = before[-1:] == shape[-1:] and before[:-1] in ((), shape[:-2])
        if flow.of(operand) != number and is_vector:
            rows.append((index, number))
    if not columns or not rows:
        return None
    (first, column), (second, vector) = columns[0], rows[0]
    return Join(step, column, vector, first < second)


def origin_of(flow: Flow, number: int) -> ColumnOrigin:
    """Return where the trailing axis of a column comes from; a layer is stronger than the rest."""
    origins = set(_origins(flow, number, set()))
    return next((origin for origin in ColumnOrigin if origin in origins), ColumnOrigin.GIVEN)


def _origins(flow: Flow, number: int, visited: set[int]) -> Iterator[ColumnOrigin]:
    number = flow.of(number)
    if number in visited or len(visited) >= _MOST:
        return
    visited.add(number)
    step, shape = flow.producer(number), flow.values[number].shape
    if step is None:
        yield ColumnOrigin.GIVEN
        return
    before = flow.value(step.operands[0]).shape if step.operands else ()
    match step.primitive:
        case "dot_general" | "conv_general_dilated":
            yield ColumnOrigin.LAYER
        case "split" if origin_of(flow, step.operands[0]) is ColumnOrigin.LAYER:
            yield ColumnOrigin.LAYER
        case primitive if primitive in ELEMENTWISE:
            for operand in step.operands:
                if flow.value(operand).shape[-2:] == shape[-2:]:
                    yield from _origins(flow, operand, visited)
        case primitive if primitive in _ADDS and not (len(before) > 1 and before[-1] == 1):
            yield ColumnOrigin.ADDED
        case primitive if primitive in _ADDS | _KEEPS_AXIS:
            yield from _origins(flow, step.operands[0], visited)
        case _:
            yield ColumnOrigin.GIVEN


def use_of(flow: Flow, join: Step) -> Use:
    """Return what becomes of the matrix, through elementwise equations of the forward pass."""
    shape = flow.value(join.results[0]).shape
    axes, pairs = {len(shape) - 2, len(shape) - 1}, shape[-1] * shape[-2]
    use, read = Use(), set[int]()
    for number, user in flow.forwards(join.results[0], _is_kept):
        read.add(number)
        if user.backward:
            continue
        match user.primitive:
            case name if name in _REDUCTIONS:
                along = set(user.numbers("axes"))
                if axes <= along or len(along) == len(flow.value(number).shape) == 1:
                    use.reduced = True
                elif name == "reduce_sum" and along & axes:
                    sums = flow.forwards(user.results[0], _is_kept, 50)
                    use.in_part |= any(summed.primitive == "reduce_sum" for _, summed in sums)
                else:
                    use.other = True
            case name if name in ELEMENTWISE:
                use.primitives.add(name)
                others = {flow.of(operand) for operand in user.operands} - read
                use.matrix |= any(_is_matrix(flow, operand, shape) for operand in others)
            case "reshape" | "squeeze" if flow.value(user.results[0]).shape[-1:] == (pairs,):
                use.reduced = True  # it is raveled
            case "dot_general" | "transpose":
                use.in_part = True
            case _:
                use.other = True
    return use


def _is_kept(step: Step) -> bool:
    return step.primitive in ELEMENTWISE and not step.backward


def _is_matrix(flow: Flow, number: int, shape: tuple[int, ...]) -> bool:
    """Whether an operand is computed from an array of all pairs that was one before."""
    if flow.value(number).shape[-2:] != shape[-2:]:
        return False
    return any(flow.values[source].shape[-2:] == shape[-2:] for source in _behind(flow, number))


def arrays_behind(flow: Flow, number: int, count: int) -> set[int]:
    """Return the arrays of so many elements that a value is computed from element by element."""
    return {source for source in _behind(flow, number) if flow.values[source].elements >= count}


def _behind(flow: Flow, number: int) -> set[int]:
    """Return the values that a value is computed from element by element."""
    return flow.sources(number, ELEMENTWISE | SHAPED | PICKS, most=500) or set()


def is_constant(flow: Flow, number: int) -> bool:
    """Whether a value is made from literals and counters alone, as classes of a one-hot are."""
    sources = flow.sources(number, lambda step: bool(step.operands) and not step.bodies, most=500)
    return sources is not None and all(
        flow.values[source].origin == LITERAL
        or ((maker := flow.producer(source)) is not None and maker.primitive == "iota")
        for source in sources
    )


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
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)) if (
                part not in called and pattern.match(name)
            ):
                return True
    return False


RULE = Rule(
    __name__, "A column and a vector of the same length broadcast to a matrix.", severity="warning"
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
        functions = (each for each in view.around(step.path) if isinstance(each, ast.FunctionDef))
        if any(_OF_PAIRS.search(function.name) for function in functions):
            continue
        tried[step.span] = _TRIED
        column, vector = flow.value(join.column), flow.value(join.vector)
        shapes = (column.shape, vector.shape)
        first, second = shapes if join.column_first else shapes[::-1]
        written = written_column(text, join)
        name = column.said if written is None else ast.get_source_segment(text, written) or ""
        count = vector.shape[-1]
        yield Violation(
            f"shapes {first} and {second} broadcast to {shape}",
            step.path,
            help=f"drop the axis of size 1 first: `{without_axis(name)}`",
            notes=(
                f"each of {count} elements is combined with all {count}, not with its own",
                f"only {quoted(name, 'one operand', most=30)} has a trailing axis of size 1",
            ),
            data=column.shape,
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
    is_layer = origin is ColumnOrigin.LAYER
    if is_layer or predicted or wanted:
        if use.reduced:
            return difference or not use.other
        is_loss = use.in_part and (is_layer or use.primitives <= _OF_LOSSES)
        return not use.other and (is_loss or (difference and (is_layer or targets)))
    if not use.reduced:
        return False
    if difference:
        return use.primitives <= _OF_LOSSES
    if join.step.primitive in ("mul", "div") and targets:
        return not use.other
    return is_named(_WEIGHTS, text) and use.primitives <= _LINEAR


# The fix: drop the axis of size 1 of the column.


# Numbers that are right; what is computed is less.
@RULE.fixes("the column without its axis of size 1 (unsafe)", trades=ALL)
def candidates(context: FixContext, shape: tuple[int, ...]) -> Iterator[Candidate]:
    """Yield the expression with `.squeeze(-1)` on each operand that has the column's shape.

    The values change on purpose.
    """
    columns = [
        operand
        for operand in operands_of(context.node)
        if (aval := context.aval_of(operand)) is not None and aval.shape == shape
    ]
    names = " and ".join(quoted(context.text(column), most=30) for column in columns)
    edits = [
        context.replace(column, f"{context.operand(column)}.squeeze(-1)") for column in columns
    ]
    if edits:
        yield Candidate(f"Drop the last axis of {names}", tuple(edits), same=False)
