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
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from jaxsight.rules.exceptions import quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.view import ELEMENTWISE, Flow, Reading, elements, numbers
from jaxsight.rules.rule import Rule
from jaxsight.wire.program import CONSTANT, LITERAL, Step

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
_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_prod"}
)
_MOVES = frozenset(
    {"reshape", "squeeze", "broadcast_in_dim", "transpose", "slice", "dynamic_slice", "gather",
     "rev", "expand_dims", "split", "unstack", "copy"}
)  # fmt: skip
_KEEPS = ELEMENTWISE | {"reduce_precision"}
_ADDS_AXIS = re.compile(r"\[[^\[\]]*\b(?:None|newaxis)\b[^\[\]]*\]|expand_dims\(|outer\(|grid\(")
"""What says anywhere in an expression that all pairs are meant."""
_SHAPES = frozenset({"reshape", "transpose", "atleast_2d", "swapaxes", "column_stack", "T", "mT"})
"""What says so of a column that it makes."""
_OF_PAIRS = re.compile(
    r"(?:^|_)(?:pair\w*|outer|kernel|gram|cross(?!_?entropy)|matrix|dists?|distances?|rbf|table|"
    r"grid|mesh|affinity|similarity|cdf|hist\w*)(?:_|$)"
)
"""What the name of a function says that computes all pairs."""
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
_LONGEST = 40
"""Characters of an expression that the help repeats."""


class _Origin(Enum):
    """Where the trailing axis of size 1 comes from."""

    LAYER = "a product or a convolution with one output"
    GIVEN = "an argument, a constant, a slice, a loop"
    ADDED = "an axis that was added to a vector"


@dataclass(frozen=True, slots=True)
class OuterBroadcast:
    """A column that meets a vector."""

    column: tuple[int, ...]
    """The shape of the operand whose last axis has size 1."""
    vector: tuple[int, ...]
    """The shape of the other operand, before it is broadcast."""
    primitive: str


@dataclass(frozen=True, slots=True)
class _Join:
    """An equation whose operands are a column and a row that was a vector."""

    step: Step
    column: int
    vector: int
    column_first: bool


@dataclass(frozen=True, slots=True)
class _Use:
    """What becomes of a matrix of pairs."""

    reduced: bool = False
    """All its elements are reduced to one, or to one for each batch."""
    primitives: frozenset[str] = frozenset()
    """The elementwise primitives before that."""
    in_part: bool = False
    """It is summed along one axis after the other, or multiplied as a matrix."""
    other: bool = False
    """Something uses it that needs a matrix: a sort, a maximum along an axis."""
    matrix: bool = False
    """It is combined with another matrix of that shape, so all pairs are meant."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield the user's expressions whose operands broadcast to all pairs by accident."""
    flow = reading.flow
    tried: Counter[object] = Counter()
    for step in flow.steps.values():
        if step.primitive not in _JOINS or step.backward or tried[step.span] >= _TRIED:
            continue
        shape = flow.value(step.results[0]).shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            continue
        join = _join(flow, step, shape)
        if join is None:
            continue
        tried[step.span] += 1
        text = reading.quote(step.path)
        if not text or _is_explicit(text, join) or not _is_accident(flow, join, text):
            continue
        if any(map(_computes_pairs, reading.around(step.path))):
            continue
        tried[step.span] = _TRIED
        yield _noticed(reading, join, text)


def _noticed(reading: Reading, join: _Join, text: str) -> Noticed:
    flow = reading.flow
    column, vector = flow.value(join.column), flow.value(join.vector)
    result = flow.value(join.step.results[0])
    first, second = column.shape, vector.shape
    if not join.column_first:
        first, second = second, first
    written = _written(text, join)
    name = flow.value(join.column).said
    if written is not None:
        name = ast.get_source_segment(text, written) or ""
    count = vector.shape[-1]
    return Noticed(
        f"shapes {first} and {second} broadcast to {result.shape}",
        join.step.path,
        help=f"drop the axis of size 1 first: `{_dropped(name)}`",
        notes=(
            f"each of {count} elements is combined with all {count}, not with its own",
            f"only {quoted(name, 'one operand', most=30)} has a trailing axis of size 1",
        ),
        data=OuterBroadcast(column.shape, vector.shape, join.step.primitive),
    )


def _join(flow: Flow, step: Step, shape: tuple[int, ...]) -> _Join | None:
    """Return the column and the vector that an equation makes a matrix of.

    The vector becomes a row by broadcasting in the same expression: nobody wrote it.
    """
    operands = [
        (index, _before_broadcast(flow, step, number)) for index, number in enumerate(step.operands)
    ]
    columns = [
        (index, number)
        for index, number in operands
        if flow.value(number).shape[-2:] == (shape[-1], 1)
    ]
    rows = [
        (index, number)
        for index, number in operands
        if flow.of(step.operands[index]) != number
        and flow.value(number).shape[-1:] == shape[-1:]
        and flow.value(number).shape[:-1] in ((), shape[:-2])
    ]
    if not columns or not rows:
        return None
    return _Join(step, columns[0][1], rows[0][1], columns[0][0] < rows[0][0])


def _before_broadcast(flow: Flow, step: Step, number: int) -> int:
    """Return the operand as it was before the expression itself broadcast it."""
    maker = flow.made_by(number)
    while (
        maker is not None
        and maker.primitive in ("broadcast_in_dim", "reshape", "expand_dims")
        and maker.span == step.span
        and len(maker.operands) == 1
    ):
        number = maker.operands[0]
        maker = flow.made_by(number)
    return flow.of(number)


def _is_accident(flow: Flow, join: _Join, text: str) -> bool:
    """Whether the pairs can hardly be meant."""
    if _is_known(flow, join.vector) or _is_known(flow, join.column):
        return False
    count = flow.value(join.vector).shape[-1]
    if _sources(flow, join.column, count) & _sources(flow, join.vector, count):
        return False  # all pairs of one array
    origin = _origin(flow, join.column)
    predicted, wanted = _is_named(_PREDICTED, text), _is_named(_WANTED, text)
    use = _use(flow, join.step)
    difference = join.step.primitive in _DIFFERENCES
    if use.matrix:
        return False
    if origin is _Origin.ADDED:
        return use.reduced and predicted and difference
    targets = wanted or (_is_named(_Y, text) and not _is_named(_X, text))
    if origin is _Origin.LAYER or predicted or wanted:
        if use.reduced:
            return difference or not use.other
        if use.in_part and (origin is _Origin.LAYER or use.primitives <= _OF_LOSSES):
            return not use.other
        return difference and not use.other and (origin is _Origin.LAYER or targets)
    if not use.reduced:
        return False
    if difference:
        return use.primitives <= _OF_LOSSES
    if join.step.primitive in ("mul", "div") and targets:
        return not use.other
    return _is_named(_WEIGHTS, text) and use.primitives <= _LINEAR


def _computes_pairs(node: ast.AST) -> bool:
    """Whether a node is a function whose name says that all pairs are meant."""
    return isinstance(node, ast.FunctionDef) and _OF_PAIRS.search(node.name) is not None


def _is_known(flow: Flow, number: int) -> bool:
    """Whether a value is made from literals and counters alone, as classes of a one-hot are."""
    found = flow.sources(number, lambda step: bool(step.operands) and not step.bodies, most=500)
    if found is None:
        return False
    return all(
        flow.values[source].origin == LITERAL
        or ((maker := flow.made_by(source)) is not None and maker.primitive == "iota")
        for source in found
    )


def _sources(flow: Flow, number: int, count: int) -> set[int]:
    """Return the arrays of so many elements that a value is computed from element by element."""
    found = flow.sources(
        number, lambda step: step.primitive in _KEEPS | _MOVES and not step.bodies, most=500
    )
    return {source for source in found or () if elements(flow.values[source]) >= count}


def _origin(flow: Flow, number: int) -> _Origin:
    """Return where the trailing axis of a column comes from; a layer is stronger than the rest."""
    waiting, seen = [flow.of(number)], set[int]()
    found = set[_Origin]()
    while waiting and len(seen) < 200:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        step, value = flow.made_by(each), flow.values[each]
        if step is None or step.bodies or value.origin == CONSTANT:
            found.add(_Origin.GIVEN)
        elif step.primitive in ("dot_general", "conv_general_dilated"):
            found.add(_Origin.LAYER)
        elif step.primitive == "split":
            layered = _origin(flow, step.operands[0])
            found.add(layered if layered is _Origin.LAYER else _Origin.GIVEN)
        elif step.primitive in _KEEPS:
            waiting += [
                flow.of(operand)
                for operand in step.operands
                if flow.value(operand).shape[-2:] == value.shape[-2:]
            ]
        elif step.primitive in ("broadcast_in_dim", "reshape", "expand_dims"):
            before = flow.value(step.operands[0]).shape
            if before[-1:] == (1,) and len(before) > 1:
                waiting.append(flow.of(step.operands[0]))
            else:
                found.add(_Origin.ADDED)
        elif step.primitive in ("squeeze", "transpose", "rev", "copy", "concatenate", "slice"):
            waiting.append(flow.of(step.operands[0]))
        else:
            found.add(_Origin.GIVEN)
    for origin in (_Origin.LAYER, _Origin.ADDED):
        if origin in found:
            return origin
    return _Origin.GIVEN


def _use(flow: Flow, join: Step) -> _Use:
    """Return what becomes of the matrix, through elementwise equations of the forward pass."""
    shape = flow.value(join.results[0]).shape
    axes = {len(shape) - 2, len(shape) - 1}
    waiting, seen = [flow.of(join.results[0])], set[int]()
    reduced = in_part = other = matrix = False
    primitives = set[str]()
    while waiting and len(seen) < 200:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        for user in flow.used_by(number):
            if user.backward:
                continue
            if user.primitive in _REDUCTIONS:
                along = set(numbers(user, "axes"))
                if axes <= along or len(along) == len(flow.value(number).shape) == 1:
                    reduced = True
                elif user.primitive == "reduce_sum" and along & axes:
                    in_part = in_part or _is_summed(flow, user)
                else:
                    other = True
            elif user.primitive in _KEEPS:
                primitives.add(user.primitive)
                waiting += map(flow.of, user.results)
                matrix = matrix or any(
                    _is_matrix(flow, each, shape)
                    for each in user.operands
                    if flow.of(each) not in seen
                )
            elif user.primitive in ("reshape", "squeeze") and _is_flat(flow, user, shape):
                reduced = True
            elif user.primitive in ("dot_general", "transpose"):
                in_part = True
            else:
                other = True
    return _Use(reduced, frozenset(primitives), in_part, other, matrix)


def _is_matrix(flow: Flow, number: int, shape: tuple[int, ...]) -> bool:
    """Whether an operand is computed from an array of all pairs that was one before."""
    if flow.value(number).shape[-2:] != shape[-2:]:
        return False
    found = flow.sources(
        number, lambda step: step.primitive in _KEEPS | _MOVES and not step.bodies, most=200
    )
    return any(flow.values[source].shape[-2:] == shape[-2:] for source in found or ())


def _is_flat(flow: Flow, step: Step, shape: tuple[int, ...]) -> bool:
    """Whether a matrix of pairs is raveled."""
    after = flow.value(step.results[0]).shape
    return after[-1:] == (shape[-1] * shape[-2],)


def _is_summed(flow: Flow, step: Step) -> bool:
    """Whether sums along one axis of the pairs are summed along the other."""
    waiting, seen = [flow.of(step.results[0])], set[int]()
    while waiting and len(seen) < 50:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        for user in flow.used_by(number):
            if user.primitive == "reduce_sum":
                return True
            if user.primitive in _KEEPS and not user.backward:
                waiting += map(flow.of, user.results)
    return False


def _is_explicit(text: str, join: _Join) -> bool:
    """Whether the expression itself gives an operand the shape of a column."""
    column = _written(text, join)
    operands = [column] if column is not None else _arguments(text)
    return _ADDS_AXIS.search(text) is not None or any(map(_is_shaped, operands))


def _is_shaped(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _SHAPES
        case ast.UnaryOp(operand=operand):
            return _is_shaped(operand)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            keeps = any(each.arg == "keepdims" for each in keywords)
            return name in _SHAPES or (keeps and not name.startswith("arg"))
        case _:
            return False


def _arguments(text: str) -> list[ast.expr]:
    node = _parsed(text)
    return node.args if isinstance(node, ast.Call) else []


def _parsed(text: str) -> ast.AST | None:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    if len(body) != 1:
        return None
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]


def _written(text: str, join: _Join) -> ast.expr | None:
    """Return the column as it is written; `None` where that is unclear."""
    match _parsed(text):
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return left if join.column_first else right
        case ast.AugAssign(target=left, value=right):
            return left if join.column_first else right
        case _:
            return None


def _dropped(name: str) -> str:
    """Return the column without its trailing axis as code, for an expression that is short."""
    if not name or len(name) > _LONGEST:
        return ".squeeze(-1)"
    is_simple = isinstance(_parsed(name), ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"{name}.squeeze(-1)" if is_simple else f"({name}).squeeze(-1)"


def _is_named(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression has a name of this kind, other than those of functions it calls."""
    node = _parsed(text)
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
